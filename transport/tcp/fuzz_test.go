package tcp

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport/internal/packet"
)

// arriving is a socket at which bytes arrive in pieces.
type arriving struct {
	b     []byte
	sizes uint64 // of the pieces: turned, its low bits
}

func (a *arriving) read(to [][]byte) (n int, err error) {
	if len(a.b) == 0 {
		return 0, errProcessEnded
	}
	a.sizes = bits.RotateLeft64(a.sizes, 7)
	limit := min(len(a.b), int(a.sizes&(64<<10-1)))
	for _, piece := range to {
		k := copy(piece, a.b[:limit])
		a.b, n, limit = a.b[k:], n+k, limit-k
	}
	return n, nil
}

func (a *arriving) write([][]byte) (int, error) { return 0, nil }
func (a *arriving) bind(*peer)                  {}
func (a *arriving) awaitRoom()                  {}
func (a *arriving) close() error                { return nil }

// putTogether is a receiver that puts what it gets together again.
type putTogether struct {
	t      *testing.T
	stream []byte
	places uint64 // of packets, turned: whether their memory is known
	rest   packet.Body
}

func (r *putTogether) Locate(_ int, first []byte, n int) (packet.Body, bool) {
	require.Len(r.t, first, packet.PlacedBytes)
	require.LessOrEqual(r.t, n, longestBytes)
	if r.places = bits.RotateLeft64(r.places, 1); r.places&1 == 0 {
		return packet.Body{}, false
	}
	b := make([]byte, n-len(first))
	r.rest = packet.Body{b[:len(b)/3], b[len(b)/3:]}
	return r.rest, true
}

func (r *putTogether) Deliver(_ int, b []byte, isPlaced bool) bool {
	n := int(binary.LittleEndian.Uint32(b[packet.WireOffset:]))
	r.stream = append(r.stream, b...)
	if isPlaced {
		r.stream = append(append(r.stream, r.rest[0]...), r.rest[1]...)
		n -= len(r.rest[0]) + len(r.rest[1])
	}
	require.Len(r.t, b, n)
	return false
}

// Whatever another process sends, and however that arrives, packets are whole and in order, and
// a length that is none ends its connection.
func FuzzReceive(f *testing.F) {
	framed := func(lengths ...int) (b []byte) {
		for i, n := range lengths {
			p := bytes.Repeat([]byte{byte(i + 1)}, max(n, packet.WireOffset+4))
			binary.LittleEndian.PutUint32(p[packet.WireOffset:], uint32(n))
			b = append(b, p...)
		}
		return b
	}
	f.Add(framed(24, 100, packet.ShortBytes, 8), uint64(0x0102040810204081), uint64(0))
	f.Add(framed(packet.ShortBytes+1, 24, 3*packet.ShortBytes, packet.ShortBytes), uint64(0xfedcba9876543210), uint64(5))
	f.Add(framed(longestBytes, longestBytes), ^uint64(0), uint64(1))
	f.Add(framed(7), uint64(99), uint64(0))
	f.Add(framed(longestBytes+1), uint64(99), uint64(0))
	f.Add([]byte{1, 2, 3}, uint64(1), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, sizes, places uint64) {
		r := &putTogether{t: t, places: places}
		p := &peer{socket: &arriving{bytes.Clone(b), sizes | 1}, pool: &packet.Pool{}, in: inbound{buffer: make([]byte, bufferBytes)}}
		var err error
		for err == nil {
			_, err = p.receive(r)
		}
		require.True(t, bytes.HasPrefix(b, r.stream))
		rest := b[len(r.stream):]
		if isWhole := len(rest) < packet.WireOffset+4; isWhole {
			require.ErrorIs(t, err, errProcessEnded)
			return
		}
		n := int(binary.LittleEndian.Uint32(rest[packet.WireOffset:]))
		isLength := n >= packet.WireOffset+4 && n <= longestBytes
		require.Equal(t, isLength, err == errProcessEnded, "%d: %v", n, err)
		require.True(t, !isLength || n > len(rest), "a packet that was there is lacking")
	})
}
