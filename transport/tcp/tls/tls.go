package tls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/internal/handshake"
)

func init() { handshake.NewWrap = newWrap }

// files are those of a rank.
type files struct {
	authority, certificate string // their names
	roots                  *x509.CertPool
	config                 *tls.Config
}

// newWrap reads the files of a directory.
func newWrap(directory string) (handshake.Wrap, error) {
	f := &files{authority: filepath.Join(directory, "ca.crt"), certificate: filepath.Join(directory, "tls.crt"), roots: x509.NewCertPool()}
	text, err := os.ReadFile(f.authority)
	if err != nil {
		return nil, err
	}
	if !f.roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", f.authority)
	}

	pair, err := tls.LoadX509KeyPair(f.certificate, filepath.Join(directory, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("%s with tls.key: %w", f.certificate, err)
	}
	chain, err := x509.ParseCertificates(slices.Concat(pair.Certificate...))
	if err == nil {
		err = f.verify(chain)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: by %s: %w", f.certificate, f.authority, err)
	}

	f.configure(pair)
	return f.wrap, nil
}

// configure sets how this rank speaks TLS.
func (f *files) configure(pair tls.Certificate) {
	f.config = &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{pair},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // verifyPeer does, for both sides
		VerifyConnection:       f.verifyPeer,
		SessionTicketsDisabled: true, // nobody connects twice

		DynamicRecordSizingDisabled: true,
	}
}

// verify checks a certificate, behind which are those that have signed it.
func (f *files) verify(chain []*x509.Certificate) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: f.roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return err
}

// verifyPeer checks the certificate of the other end, which TLS requires.
func (f *files) verifyPeer(s tls.ConnectionState) error {
	if err := f.verify(s.PeerCertificates); err != nil {
		return fmt.Errorf("its certificate is not accepted, by %s: %w", f.authority, err)
	}
	return nil
}

// wrap is a handshake.Wrap.
func (f *files) wrap(conn net.Conn, isDialer bool, prove func(conn io.ReadWriter, binding []byte) error) (net.Conn, error) {
	c := tls.Server(conn, f.config)
	if isDialer {
		c = tls.Client(conn, f.config)
	}
	err := c.Handshake()
	if err == nil {
		s := c.ConnectionState()
		var binding []byte
		if binding, err = s.ExportKeyingMaterial("EXPORTER-goccl", nil, 32); err == nil {
			err = prove(c, binding)
		}
	}

	ended, isNetwork := errors.AsType[*net.OpError](err)
	switch {
	case err == nil:
		return c, nil
	case isNetwork && ended.Op == "remote error": // TLS says so when the other end reports one
		return nil, &handshake.WrapError{Err: fmt.Errorf("it does not accept the certificate in %s: %w", f.certificate, err)}
	case isNetwork || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded):
		return nil, err
	}
	return nil, &handshake.WrapError{Err: err}
}
