package ccl_test

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// smallCalls are the calls of the benchmarks of small calls; 0 bytes are a barrier.
var smallCalls = []int{0, 4, 64, 1 << 10}

func benchSmall(b *testing.B, c *ccl.Communicator, bytes int) (err error) {
	buf := make([]float32, bytes/4)
	for range b.N {
		if bytes == 0 {
			err = c.Barrier(bg)
		} else {
			err = ccl.AllReduce(bg, c, buf, buf, ccl.Sum)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Two ranks make small calls one after the other.
func BenchmarkSmall(b *testing.B) {
	for _, n := range smallCalls {
		b.Run(fmt.Sprint("bytes=", n), func(b *testing.B) {
			ranks(b, 2, func(c *ccl.Communicator) error { return benchSmall(b, c, n) })
		})
	}
}

// echo is the end of a group of two ranks whose other rank always makes the same call, at the same
// time, with the same input.
type echo struct {
	transport.Endpoint
	payload []byte
}

func (*echo) Rank() int         { return 0 }
func (*echo) Size() int         { return 2 }
func (*echo) PayloadLimit() int { return 2048 }
func (e *echo) Enter(a *transport.Arrival) (transport.Role, error) {
	e.payload = a.Payload
	return transport.RunOwn, nil
}
func (e *echo) Payload(_, n int) []byte { return e.payload[:n] }
func (*echo) Conclude(bool) bool        { return true }

// What a small call costs one rank besides its synchronisation.
func BenchmarkSmallAlone(b *testing.B) { benchAlone(b) }

// BenchmarkSmallAlone with totals for the log.
func BenchmarkSmallAloneLogged(b *testing.B) {
	benchAlone(b, ccl.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
}

func benchAlone(b *testing.B, opts ...ccl.Option) {
	for _, n := range smallCalls {
		b.Run(fmt.Sprint("bytes=", n), func(b *testing.B) {
			c, err := ccl.New(bg, &echo{Endpoint: local.NewWaiting(2, local.Poll)[0]}, opts...)
			require.NoError(b, err)
			require.NoError(b, benchSmall(b, c, n))
		})
	}
}

// What a small asynchronous call costs one rank besides its synchronisation.
func BenchmarkRepeatedAlone(b *testing.B) {
	c, err := ccl.New(bg, &echo{Endpoint: local.NewWaiting(2, local.Poll)[0]})
	require.NoError(b, err)
	buf := make([]float32, 1)
	r := repeat(c, buf, buf, ccl.Sum)
	for b.Loop() {
		if err := r(bg).Wait(bg); err != nil {
			b.Fatal(err)
		}
	}
}

// What a message costs one rank: it sends it to itself.
func BenchmarkMessageAlone(b *testing.B) {
	ranks(b, 2, func(c *ccl.Communicator) error {
		if c.Rank() > 0 {
			return nil
		}
		out, in := make([]float32, 1), make([]float32, 1)
		for b.Loop() {
			if _, err := ccl.SendRecv(bg, c, out, 0, in, 0, 0); err != nil {
				return err
			}
		}
		return nil
	})
}
