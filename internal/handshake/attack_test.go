package handshake

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slow is a dialer's connection that does not send its proof before it may.
type slow struct {
	net.Conn
	writes int
	may    func()
}

func (s *slow) Write(b []byte) (int, error) {
	if s.writes++; s.writes == 2 {
		s.may()
	}
	return s.Conn.Write(b)
}

// A host that opens more connections than a listener takes crowds out its own ones only.
func TestFloodOfOneHost(t *testing.T) {
	if conn, err := net.ListenPacket("udp", "127.0.0.2:0"); err != nil {
		t.Skipf("this host has one loopback address: %v", err)
	} else {
		require.NoError(t, conn.Close())
	}
	l, got := serve(t, secret)
	var flood []net.Conn
	defer func() {
		for _, conn := range flood {
			_ = conn.Close()
		}
	}()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}

	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	patient := &slow{Conn: conn, may: func() {
		for range maxPending + 10 {
			conn, err := from.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			flood = append(flood, conn)
		}
		require.Eventually(t, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.strangers >= 10
		}, time.Minute, time.Millisecond)
	}}
	require.NoError(t, dial(patient, job, asked))
	require.Equal(t, asked, <-got)
}

// All that peers without the secret make a process hold is bounded, and ends with the listener.
func TestStrangersAreBounded(t *testing.T) {
	before := runtime.NumGoroutine()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := Serve(l, job, func(net.Conn, Opening) { t.Error("one was accepted") })
	var open []net.Conn
	for i := range 2 * maxPending {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		open = append(open, conn)
		_, _ = conn.Write(asked.encode()[:i%openingBytes])
	}
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.strangers >= maxPending
	}, time.Minute, time.Millisecond)
	s.mu.Lock()
	require.Len(t, s.pending, maxPending)
	s.mu.Unlock()

	require.NoError(t, s.Close())
	require.Empty(t, s.pending)
	for _, conn := range open {
		_ = conn.Close()
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, time.Minute, time.Millisecond) // that of Eventually
}

// A peer that says little by little what a handshake is has the time of one, and no more.
func TestHandshakesEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a, b := net.Pipe()
	deadlines := make(chan time.Time, 10)
	s := &Listener{listener: l, identity: job, handle: func(net.Conn, Opening) { t.Error("it was accepted") }}
	done := make(chan struct{})
	go func() {
		s.shake(&timed{Conn: a, deadlines: deadlines})
		close(done)
	}()
	require.WithinDuration(t, time.Now().Add(handshakeTime), <-deadlines, time.Minute)
	go func() { _, _ = io.Copy(io.Discard, b) }()
	for _, c := range asked.encode() {
		_, err := b.Write([]byte{c})
		require.NoError(t, err)
	}
	require.Empty(t, deadlines, "no byte gives it more time")
	require.NoError(t, a.SetDeadline(time.Unix(1, 0)))
	<-done
	require.NotEmpty(t, s.Strangers())
	require.NoError(t, l.Close())
}

// timed is a connection that tells its deadlines.
type timed struct {
	net.Conn
	deadlines chan time.Time
}

func (c *timed) SetDeadline(at time.Time) error {
	c.deadlines <- at
	return c.Conn.SetDeadline(at)
}

// All changes of a byte that a dialer who knows the secret sends are noticed.
func TestEveryByteIsProved(t *testing.T) {
	for changed := len(magic); changed < openingBytes+proofBytes; changed++ {
		here, there := net.Pipe()
		go func() {
			_ = dial(&changing{Conn: here, at: changed}, job, asked)
			_ = here.Close()
		}()
		_, err := accept(there, job, always)
		require.ErrorIs(t, err, ErrOtherSecret, "byte %d", changed)
	}
	for changed := len(magic); changed < answerBytes+1+proofBytes; changed++ {
		here, there := net.Pipe()
		go func() {
			_, _ = accept(&changing{Conn: there, at: changed}, job, always)
			_ = there.Close()
		}()
		require.Error(t, dial(here, job, asked), "byte %d", changed)
	}
}

// changing is a connection on which a byte that is sent changes.
type changing struct {
	net.Conn
	at int
}

func (c *changing) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	if c.at >= 0 && c.at < len(b) {
		b[c.at] ^= 1
	}
	c.at -= len(b)
	return c.Conn.Write(b)
}
