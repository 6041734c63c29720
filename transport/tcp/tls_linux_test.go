package tcp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport"
)

// encrypt makes connections of n processes those of TLS.
func encrypt(t testing.TB, conns [][][]net.Conn) [][][]net.Conn {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}

	var shaking sync.WaitGroup
	for i := range conns {
		for j := range i {
			for lane := range conns[i][j] {
				server, client := tls.Server(conns[i][j][lane], c), tls.Client(conns[j][i][lane], c)
				conns[i][j][lane], conns[j][i][lane] = server, client
				for _, end := range []*tls.Conn{server, client} {
					shaking.Go(func() { require.NoError(t, end.Handshake()) })
				}
			}
		}
	}
	shaking.Wait()
	return conns
}

// Random programs give the right results over connections of TLS.
func TestProgramsOverTLS(t *testing.T) {
	c, err := config.Parse("ccl.yaml", []byte(preferred))
	require.NoError(t, err)
	for seed, nodes := range [][]int{{0, 1}, {0, 1, 2}} {
		settings, err := c.Resolve(config.Request{Ranks: len(nodes), Timeout: time.Minute})
		require.NoError(t, err)
		p := stress.New(uint64(seed), stress.Options{
			Ranks: len(nodes), Events: 40, Longest: []int{100, 100_000}[seed%2], Algorithms: []string{"direct", "ring", "tree"},
		})
		eps := joinAll(t, processes(t, nodes, encrypt(t, loopback(t, len(nodes), 2)), suitePieceBytes))
		errs := make([]error, len(nodes))
		var all sync.WaitGroup
		for rank, ep := range eps {
			all.Go(func() {
				g, err := ccl.New(t.Context(), ep, ccl.WithSelector(settings))
				if err == nil {
					err = errors.Join(p.Run(t.Context(), g), g.Close())
				}
				errs[rank] = err
			})
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...), fmt.Sprint(nodes))
	}
}

// A process that dies without a word of TLS is lost, and its host is watched below TLS.
func TestDeathOverTLS(t *testing.T) {
	conns := encrypt(t, loopback(t, 2, 2))
	dying := []net.Conn{conns[1][0][0].(*tls.Conn).NetConn(), conns[1][0][1].(*tls.Conn).NetConn()}
	all := make([]*process, 2)
	for rank := range all {
		p, err := newProcess(connections{rank: rank, node: rank, conns: conns[rank], silence: 8 * time.Second})
		require.NoError(t, err)
		all[rank] = p
	}
	raw, err := handshake.Unwrap(conns[0][1][1]).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		idle, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		require.NoError(t, err)
		require.Equal(t, 2, idle, "seconds, a fourth")
	}))

	eps := joinAll(t, all)
	for _, conn := range dying {
		require.NoError(t, conn.Close())
	}
	_, err = eps[0].Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1})
	lost, isLost := errors.AsType[*transport.PeerLostError](err)
	require.True(t, isLost, "%v", err)
	require.Equal(t, 1, lost.Rank)

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // they do not wait for each other
	defer cancel()
	for rank, ep := range eps {
		require.NoError(t, errors.Join(ep.Close(), ep.Free()))
		_ = all[rank].leave(ctx)
	}
}
