package mesh

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testStore is a server of torch's store, in the older form or in one of the two newer ones.
type testStore struct {
	net.Listener
	shift    byte // of the kinds of queries
	isSilent bool // about a connection that begins in the older form, as with libuv

	mu      sync.Mutex
	values  map[string]string
	queries int
}

func serveStore(t testing.TB, shift byte, isSilent bool) *testStore {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &testStore{Listener: l, shift: shift, isSilent: isSilent, values: map[string]string{}}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				s.serve(conn)
			}()
		}
	}()
	return s
}

func (s *testStore) address() fixed { return fixed{loopback, s.Addr().(*net.TCPAddr).Port} }

// serve answers the queries of a connection, until one is not valid.
func (s *testStore) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	if s.shift == 1 {
		var first [5]byte
		if _, err := io.ReadFull(r, first[:1]); err != nil {
			return
		}
		if first[0] != 0 {
			if s.isSilent {
				_, _ = io.Copy(io.Discard, r)
			}
			return
		}
		if _, err := io.ReadFull(r, first[1:]); err != nil || binary.LittleEndian.Uint32(first[1:]) != 0x3C85F7CE {
			return
		}
	}
	for {
		kind, err := r.ReadByte()
		if err != nil || !s.answer(conn, r, kind-s.shift) {
			return
		}
	}
}

func (s *testStore) answer(w io.Writer, r io.Reader, kind byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries++
	switch kind {
	case 1:
		var texts [3]string
		for i := range texts {
			var err error
			if texts[i], err = readText(r); err != nil {
				return false
			}
		}
		if old, has := s.values[texts[0]]; !has && texts[1] == "" || has && old == texts[1] {
			s.values[texts[0]] = texts[2]
		}
		_, _ = w.Write(appendText(nil, s.values[texts[0]]))
	case 2:
		key, err := readText(r)
		value, has := s.values[key]
		if err != nil || !has {
			return false // it throws
		}
		_, _ = w.Write(appendText(nil, value))
	case 4:
		var n [8]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return false
		}
		answer := byte(0)
		for range binary.LittleEndian.Uint64(n[:]) {
			key, err := readText(r)
			if err != nil {
				return false
			}
			if _, has := s.values[key]; !has {
				answer = 1
			}
		}
		_, _ = w.Write([]byte{answer})
	default:
		return false
	}
	return true
}

func TestStore(t *testing.T) {
	for name, s := range map[string]*testStore{
		"older":        serveStore(t, 0, false),
		"newer":        serveStore(t, 1, false),
		"newer, libuv": serveStore(t, 1, true),
	} {
		for _, isNew := range []bool{false, true} {
			if isNew && s.shift == 0 {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c, err := dialStore(t.Context(), s.address().String(), isNew)
				require.NoError(t, err)
				defer c.close()
				key := "goccl/" + t.Name()
				value, err := c.get(key)
				require.NoError(t, err)
				require.Empty(t, value)

				value, err = c.replace(key, "", "10.0.0.1:4711")
				require.NoError(t, err)
				require.Equal(t, "10.0.0.1:4711", value)
				value, err = c.replace(key, "", "10.0.0.2:4711")
				require.NoError(t, err)
				require.Equal(t, "10.0.0.1:4711", value, "the first one counts")
				value, err = c.get(key)
				require.NoError(t, err)
				require.Equal(t, "10.0.0.1:4711", value)
			})
		}
	}
}

// TestConnectByStore lets ranks find each other in the store of an agent, at whose port they do not
// listen.
func TestConnectByStore(t *testing.T) {
	for _, s := range []*testStore{serveStore(t, 0, false), serveStore(t, 1, false)} {
		all := configs(t, 4)
		for _, c := range all {
			c.Rendezvous = &agentStore{fixed: s.address(), key: "goccl/" + c.Job}
		}
		exchange(t, connectAll(bounded(t), all, func(rank int) time.Duration { return time.Duration(4-rank) * 10 * time.Millisecond }))

		// Their program is started again, and the store has the address of its first rank 0.
		exchange(t, connectAll(bounded(t), all, nil))

		ctx, cancel := context.WithCancel(bounded(t))
		ended := make(chan error, 2)
		for range 2 {
			go func() {
				zero := *all[0]
				zero.Rendezvous = &agentStore{fixed: s.address(), key: "goccl/" + zero.Job}
				_, err := Connect(ctx, &zero)
				ended <- err
			}()
		}
		err := <-ended
		require.ErrorContains(t, err, "says that it is rank 0 of this job")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
}

func TestNoStore(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	defer l.Close()
	_, err = dialStore(t.Context(), l.Addr().String(), false)
	require.ErrorContains(t, err, "it answers in no form of torch's store")
}

// FuzzStore shows that no answer of a store is believed beyond its length, or makes a client panic.
func FuzzStore(f *testing.F) {
	f.Add([]byte("\x00\x05\x00\x00\x00\x00\x00\x00\x00value"))
	f.Add([]byte("\x01\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		defer here.Close()
		go func() {
			go func() { _, _ = io.Copy(io.Discard, there) }()
			_, _ = there.Write(b)
			_ = there.Close()
		}()
		c := &storeClient{Conn: here, stop: func() bool { return true }}
		if value, err := c.get("key"); err == nil && len(value) > maxValue {
			t.Errorf("a value of %d bytes", len(value))
		}
		if _, err := readText(bytes.NewReader(b)); err == nil && len(b) < 8 {
			t.Error("a length of fewer than 8 bytes")
		}
	})
}
