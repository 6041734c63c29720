package handshake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const secret = "a secret of the job"

var job = Identity{Secret: secret}

var asked = Opening{Purpose: 2, Number: 7, From: 3, To: 1, Session: [16]byte{1, 2, 3, 15: 9}}

// serve starts a listener on loopback. got receives the openings of what it accepts.
func serve(t *testing.T, secret string) (l *Listener, got chan Opening) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got = make(chan Opening, 1000)
	l = Serve(inner, Identity{Secret: secret}, func(conn net.Conn, o Opening) {
		got <- o
		_ = conn.Close()
	})
	t.Cleanup(func() { _ = l.Close() })
	return l, got
}

func TestBothProve(t *testing.T) {
	for _, secret := range []string{secret, ""} {
		l, got := serve(t, secret)
		conn, err := Dial(t.Context(), l.Addr().String(), nil, Identity{Secret: secret}, asked)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Equal(t, asked, <-got)
		require.Empty(t, l.Strangers())
	}
}

func TestOtherSecret(t *testing.T) {
	l, got := serve(t, secret)
	for range 2 {
		_, err := Dial(t.Context(), l.Addr().String(), nil, Identity{Secret: secret + "!"}, asked)
		require.ErrorIs(t, err, ErrOtherSecret)
	}
	_, err := Dial(t.Context(), l.Addr().String(), nil, Identity{Secret: secret}, asked)
	require.NoError(t, err)
	<-got
	require.Empty(t, got)
	require.Eventually(t, func() bool {
		return strings.HasPrefix(l.Strangers(), "2 connections were refused, the last: that of 127.0.0.1:")
	},
		time.Minute, time.Millisecond)
	require.Contains(t, l.Strangers(), ErrOtherSecret.Error())
}

// answering returns the address of a program that answers every connection with these bytes.
func answering(t *testing.T, answer []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, openingBytes))
			_, _ = conn.Write(answer)
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestOtherProgram(t *testing.T) {
	for _, answer := range []string{"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u2\r\n", "GOCCX", "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n"} {
		_, err := Dial(t.Context(), answering(t, []byte(answer)), nil, Identity{Secret: secret}, asked)
		require.ErrorIs(t, err, ErrOtherProgram, answer)
	}
	_, err := Dial(t.Context(), answering(t, nil), nil, Identity{Secret: secret}, asked)
	require.Error(t, err, "a proxy accepts before the program listens")
	require.NotErrorIs(t, err, ErrOtherProgram)
}

func TestOtherVersion(t *testing.T) {
	later := append([]byte(magic[:len(magic)-1]), 9)
	_, err := Dial(t.Context(), answering(t, append(later, make([]byte, nonceBytes)...)), nil, Identity{Secret: secret}, asked)
	require.Equal(t, VersionError(9), err)

	l, _ := serve(t, secret)
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	_, err = conn.Write(append(later, make([]byte, openingBytes-len(later))...))
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, []byte(magic), answer[:len(magic)], "the dialer learns it, too")
	require.Eventually(t, func() bool { return strings.Contains(l.Strangers(), VersionError(9).Error()) }, time.Minute, time.Millisecond)
}

// TestListenerThatDoesNotProve lets a program take part that does not know the secret: it sends
// back what it got, or what another connection got.
func TestListenerThatDoesNotProve(t *testing.T) {
	here, there := net.Pipe()
	go func() {
		opening := make([]byte, openingBytes)
		_, _ = io.ReadFull(there, opening)
		_, _ = there.Write(newNonce([]byte(magic)))
		claimed := make([]byte, proofBytes)
		_, _ = io.ReadFull(there, claimed)
		_, _ = there.Write(append([]byte{accepted}, claimed...)) // reflected
	}()
	require.ErrorIs(t, dial(here, job, asked), ErrOtherSecret)
}

// TestProofsAreOfNoUseElsewhere shows that a proof holds for one role, purpose and connection.
func TestProofsAreOfNoUseElsewhere(t *testing.T) {
	opening, answer := asked.encode(), newNonce([]byte(magic))
	valid := proof(secret, roleDialer, opening, answer)
	other := asked
	other.To++
	for name, same := range map[string][]byte{
		"role":    proof(secret, roleListener, opening, answer),
		"purpose": proof(secret, roleDialer, append(other.encode()[:nonceOffset:nonceOffset], opening[nonceOffset:]...), answer),
		"dialer":  proof(secret, roleDialer, asked.encode(), answer),
		"answer":  proof(secret, roleDialer, opening, newNonce([]byte(magic))),
		"secret":  proof("", roleDialer, opening, answer),
	} {
		require.NotEqual(t, valid, same, name)
	}

	// A whole connection, recorded, is no other's.
	var recorded bytes.Buffer
	here, there := net.Pipe()
	go func() { _ = dial(both{io.TeeReader(here, io.Discard), io.MultiWriter(here, &recorded)}, job, asked) }()
	_, err := accept(there, job, always)
	require.NoError(t, err)
	_, err = accept(both{&recorded, io.Discard}, job, always)
	require.ErrorIs(t, err, ErrOtherSecret)
}

func always() bool { return true }

type both struct {
	io.Reader
	io.Writer
}

// TestStrangersDoNotDisturb floods a listener with connections that say nothing, say little by
// little, or say something else, while others join.
func TestStrangersDoNotDisturb(t *testing.T) {
	l, got := serve(t, secret)
	ctx, cancel := context.WithCancel(t.Context())
	var strangers sync.WaitGroup
	for kind := range 4 {
		strangers.Go(func() {
			var open []net.Conn
			for dialed := 0; ctx.Err() == nil && dialed < 2000; {
				conn, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					continue
				}
				dialed++ // each takes a port of this host for a minute
				switch kind {
				case 0: // silent
				case 1: // a slow loris
					_, _ = conn.Write([]byte(magic[:3]))
				case 2: // a scan
					_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: here, with more bytes than an opening has\r\n\r\n"))
				case 3: // a great many bytes
					_, _ = conn.Write(bytes.Repeat([]byte(magic), 1000))
				}
				if open = append(open, conn); len(open) == 100 {
					for _, conn := range open {
						_ = conn.Close()
					}
					open = nil
				}
			}
			for _, conn := range open {
				_ = conn.Close()
			}
		})
	}

	for joined := 0; joined < 50; {
		if conn, err := Dial(ctx, l.Addr().String(), nil, Identity{Secret: secret}, asked); err == nil {
			joined++
			require.Equal(t, asked, <-got, "a dialer that was accepted is never dropped")
			_ = conn.Close()
		} else {
			require.NotErrorIs(t, err, ErrOtherSecret)
		}
		l.mu.Lock()
		require.LessOrEqual(t, len(l.pending), maxPending)
		l.mu.Unlock()
	}
	cancel()
	strangers.Wait()
	require.Eventually(t, func() bool { return l.Strangers() != "" }, time.Minute, time.Millisecond)
	require.Empty(t, got, "none of them was taken for a rank")
}

func TestCloseEndsHandshakes(t *testing.T) {
	l, _ := serve(t, secret)
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
}

func TestDialEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // whose backlog accepts, and never answers
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Dial(ctx, l.Addr().String(), nil, Identity{Secret: secret}, asked)
	require.Error(t, err)
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
}

// FuzzAccept shows that no bytes of somebody without the secret are accepted, whatever they are.
func FuzzAccept(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte(magic))
	f.Add(asked.encode())
	f.Add(append(asked.encode(), make([]byte, proofBytes)...))
	f.Add(append(asked.encode(), proof("", roleDialer, asked.encode(), newNonce([]byte(magic)))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var answer bytes.Buffer
		o, err := accept(both{bytes.NewReader(b), &answer}, job, always)
		if err == nil || o != (Opening{}) {
			t.Errorf("it was accepted as %+v", o)
		}
		if len(b) < openingBytes && answer.Len() > 0 || answer.Len() > answerBytes+1+proofBytes {
			t.Errorf("%d bytes got %d", len(b), answer.Len())
		}
		if rest := answer.Bytes(); len(rest) > answerBytes && !bytes.Equal(rest[answerBytes:], make([]byte, 1+proofBytes)) {
			t.Error("it got more than that it is refused")
		}
	})
}

// FuzzDial shows that no bytes convince a dialer.
func FuzzDial(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(append(newNonce([]byte(magic)), accepted))
	f.Add(append(newNonce([]byte(magic)), make([]byte, 1+proofBytes)...))
	f.Add([]byte("SSH-2.0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := dial(both{bytes.NewReader(b), io.Discard}, job, asked); err == nil {
			t.Error("it was convinced")
		} else if errors.Is(err, ErrOtherSecret) && len(b) < answerBytes+1+proofBytes {
			t.Error("too few bytes were enough")
		}
	})
}
