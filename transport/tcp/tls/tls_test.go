package tls

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/transport/internal/mesh"
)

// signer is one who signs certificates.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func template(from, to time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "of this test"}, NotBefore: from, NotAfter: to,
		BasicConstraintsValid: true,
	}
}

func newSigner(t testing.TB) *signer {
	s := template(time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	s.IsCA = true
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, s, s, &key.PublicKey, key)
	require.NoError(t, err)
	s, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return &signer{s, key}
}

// sign makes the files of a rank in a directory.
func (s *signer) sign(t testing.TB, from, to time.Time) (directory string) {
	directory = t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template(from, to), s.certificate, &key.PublicKey, s.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"ca.crt":  {Type: "CERTIFICATE", Bytes: s.certificate.Raw},
		"tls.crt": {Type: "CERTIFICATE", Bytes: der},
		"tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), pem.EncodeToMemory(block), 0o600))
	}
	return directory
}

func (s *signer) valid(t testing.TB) string {
	return s.sign(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// relayed is a rendezvous at a relay before rank 0. It is a mesh.Rendezvous.
type relayed struct {
	t     *testing.T
	relay func(dialer, listener net.Conn) // for each connection
	found chan string
}

func (r *relayed) Listen(ctx context.Context, address func(port int) string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(r.t, err)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = front.Close() })
	r.found <- front.Addr().String()
	go func() {
		for {
			dialer, err := front.Accept()
			if err != nil {
				return
			}
			listener, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				_ = dialer.Close()
				continue
			}
			go func() {
				defer dialer.Close()
				defer listener.Close()
				r.relay(dialer, listener)
			}()
		}
	}()
	return l, nil
}

func (r *relayed) Find(ctx context.Context) (string, error) {
	select {
	case at := <-r.found:
		r.found <- at
		return at, nil
	default:
		return "", errors.New("it does not listen yet")
	}
}

const secret = "the secret of these tests"

// connect connects two ranks that have these files, through a relay.
func connect(t *testing.T, directories [2]string, relay func(dialer, listener net.Conn)) (meshes [2]*mesh.Mesh, errs [2]error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, stop := context.WithCancel(ctx)
	defer stop()
	r := &relayed{t: t, relay: relay, found: make(chan string, 1)}
	var running sync.WaitGroup
	for rank, directory := range directories {
		running.Go(func() {
			c := &mesh.Config{Rank: rank, Size: 2, Job: "job/1", Rendezvous: r, Secret: secret, Certificates: directory, IsLoopback: true, Node: rank}
			within := ctx
			if rank == 0 {
				within = first
			}
			meshes[rank], errs[rank] = mesh.Connect(within, c)
			if rank == 1 && errs[1] != nil {
				stop() // otherwise rank 0 waits for it
			}
		})
	}
	running.Wait()
	return meshes, errs
}

// exchange sends a text over the lanes of two ranks, in both directions.
func exchange(t *testing.T, meshes [2]*mesh.Mesh, text string) {
	for lane := range 2 {
		for from := range 2 {
			_, err := meshes[from].Conns[1-from][lane].Write([]byte(text))
			require.NoError(t, err)
			got := make([]byte, len(text))
			_, err = io.ReadFull(meshes[1-from].Conns[from][lane], got)
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		}
	}
	require.NoError(t, errors.Join(meshes[0].Close(), meshes[1].Close()))
}

// wire is what has passed a relay.
type wire struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes.Write(b)
}

func (w *wire) contains(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.bytes.Bytes(), []byte(text))
}

// copyBoth carries bytes in both directions, and records them.
func (w *wire) copyBoth(a, b net.Conn) {
	var running sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		running.Go(func() {
			_, _ = io.Copy(pair[0], io.TeeReader(pair[1], w))
			_ = pair[0].Close()
		})
	}
	running.Wait()
}

const words = "nobody else reads these words"

// What ranks send is not to be read on the wire, and was without certificates.
func TestWireIsEncrypted(t *testing.T) {
	s := newSigner(t)
	for _, isEncrypted := range []bool{false, true} {
		var directories [2]string
		if isEncrypted {
			directories = [2]string{s.valid(t), s.valid(t)}
		}
		w := &wire{}
		meshes, errs := connect(t, directories, w.copyBoth)
		require.NoError(t, errors.Join(errs[:]...))
		exchange(t, meshes, words)
		require.Equal(t, isEncrypted, !w.contains(words))
		require.Equal(t, isEncrypted, !w.contains(`"members"`))
		require.True(t, w.contains("GOCCL"), "the handshake comes first")
	}
}

// Certificates that are not accepted fail the rank that dials, and name the other's host and a file.
func TestRefusedCertificates(t *testing.T) {
	s, foreign := newSigner(t), newSigner(t)
	valid := s.valid(t)
	for name, c := range map[string]struct {
		directories [2]string
		text        string
	}{
		"none of rank 0":    {[2]string{"", valid}, handshake.ErrOtherWrap.Error()},
		"none of rank 1":    {[2]string{valid, ""}, handshake.ErrOtherWrap.Error()},
		"foreign of rank 0": {[2]string{foreign.valid(t), valid}, "its certificate is not accepted, by " + valid + "/ca.crt: x509: certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := connect(t, c.directories, (&wire{}).copyBoth)
			require.ErrorContains(t, errs[1], "rank 0 at 127.0.0.1:")
			require.ErrorContains(t, errs[1], c.text)
			require.Error(t, errs[0])
		})
	}
}

// shakeHands makes a handshake with TLS between two files, without a mesh.
func shakeHands(t *testing.T, dialer, listener *files) (dialed, refused error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := handshake.Serve(l, handshake.Identity{Secret: secret, Wrap: listener.wrap}, func(conn net.Conn, _ handshake.Opening) { _ = conn.Close() })
	conn, dialed := handshake.Dial(t.Context(), l.Addr().String(), nil, handshake.Identity{Secret: secret, Wrap: dialer.wrap}, handshake.Opening{})
	if dialed == nil {
		require.NoError(t, conn.Close())
	} else {
		require.Eventually(t, func() bool { return server.Strangers() != "" }, time.Minute, time.Millisecond)
	}
	require.NoError(t, server.Close())
	if text := server.Strangers(); text != "" {
		refused = errors.New(text)
	}
	return dialed, refused
}

// read reads files whose own certificate may be none that they accept.
func read(t *testing.T, directory string) *files {
	f := &files{authority: directory + "/ca.crt", certificate: directory + "/tls.crt", roots: x509.NewCertPool()}
	text, err := os.ReadFile(f.authority)
	require.NoError(t, err)
	require.True(t, f.roots.AppendCertsFromPEM(text))
	pair, err := tls.LoadX509KeyPair(f.certificate, directory+"/tls.key")
	require.NoError(t, err)
	f.configure(pair)
	return f
}

func TestBothSidesAreAsked(t *testing.T) {
	s, foreign := newSigner(t), newSigner(t)
	good := read(t, s.valid(t))
	dialed, refused := shakeHands(t, good, good)
	require.NoError(t, errors.Join(dialed, refused))

	none := read(t, s.valid(t))
	none.config.Certificates = nil
	stranger := read(t, foreign.valid(t))
	stranger.roots = good.roots
	for name, c := range map[string]struct {
		other *files
		text  string
	}{
		"expired": {read(t, s.sign(t, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))), "x509: certificate has expired or is not yet valid"},
		"early":   {read(t, s.sign(t, time.Now().Add(time.Hour), time.Now().Add(2*time.Hour))), "x509: certificate has expired or is not yet valid"},
		"foreign": {stranger, "x509: certificate signed by unknown authority"},
		"none":    {none, "tls: client didn't provide a certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			dialed, refused := shakeHands(t, c.other, good)
			require.ErrorContains(t, dialed, "it does not accept the certificate in "+c.other.certificate+": remote error: tls: ")
			require.True(t, handshake.IsFinal(dialed))
			require.ErrorContains(t, refused, "that of 127.0.0.1:")
			require.ErrorContains(t, refused, c.text)
			if name == "none" {
				return // a listener without a certificate cannot speak TLS
			}
			dialed, refused = shakeHands(t, good, c.other)
			require.ErrorContains(t, dialed, "its certificate is not accepted, by "+good.authority+": ")
			require.ErrorContains(t, dialed, c.text)
			require.True(t, handshake.IsFinal(dialed))
			require.ErrorContains(t, refused, "it does not accept the certificate in "+c.other.certificate)
		})
	}
}

// Somebody between two ranks who has a valid certificate, and not the secret, reads nothing.
func TestCertificateAloneIsOfNoUse(t *testing.T) {
	s := newSigner(t)
	between := read(t, s.valid(t))
	w := &wire{}
	_, errs := connect(t, [2]string{s.valid(t), s.valid(t)}, func(dialer, listener net.Conn) {
		for i, n := range []int64{72, 40, 32, 33} { // the handshake, which it cannot make itself
			from, to := dialer, listener
			if i%2 == 1 {
				from, to = to, from
			}
			_, _ = io.CopyN(to, from, n)
		}
		w.copyBoth(tls.Server(dialer, between.config), tls.Client(listener, between.config))
	})
	require.ErrorContains(t, errs[1], "somebody is between the two")
	require.Error(t, errs[0])
	require.False(t, w.contains("member"))
}

// A peer that stalls within TLS holds up nobody else, nor the end of the listener.
func TestStallWithinTLS(t *testing.T) {
	s := newSigner(t)
	f := read(t, s.valid(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := handshake.Serve(l, handshake.Identity{Secret: secret, Wrap: f.wrap}, func(conn net.Conn, _ handshake.Opening) { _ = conn.Close() })
	dial := func(w handshake.Wrap) error {
		conn, err := handshake.Dial(t.Context(), l.Addr().String(), nil, handshake.Identity{Secret: secret, Wrap: w}, handshake.Opening{})
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	stalled := make(chan struct{})
	stall := func(conn net.Conn, _ bool, _ func(io.ReadWriter, []byte) error) (net.Conn, error) {
		close(stalled)
		_, err := conn.Read(make([]byte, 1))
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- dial(stall) }()
	<-stalled
	require.NoError(t, dial(f.wrap))
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-ended, io.EOF, "the listener has ended it")
	require.Contains(t, server.Strangers(), "a connection was refused: that of 127.0.0.1:")
}

func TestFiles(t *testing.T) {
	s := newSigner(t)
	spoil := func(name, text string) string {
		directory := s.valid(t)
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600))
		return directory
	}
	otherKey, err := os.ReadFile(filepath.Join(s.valid(t), "tls.key"))
	require.NoError(t, err)
	for text, directory := range map[string]string{
		"open /none/ca.crt: no such file or directory":               "/none",
		"/ca.crt has no certificate in PEM form":                     spoil("ca.crt", "text"),
		"/tls.crt with tls.key: tls: private key does not match":     spoil("tls.key", string(otherKey)),
		"/tls.crt with tls.key: tls: failed to find any PEM data in": spoil("tls.crt", ""),
		"x509: certificate has expired or is not yet valid":          s.sign(t, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)),
	} {
		_, err := newWrap(directory)
		require.ErrorContains(t, err, text)
		require.True(t, strings.Contains(err.Error(), directory), "%v", err)
	}
}
