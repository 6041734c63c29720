package handshake

import (
	"cmp"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"
	"net"
)

// Wrap protects what is sent over a connection from now on: it returns the connection to use
// instead. It ends with the deadline of conn.
//
// It calls prove once, with the protected connection and its binding: 32 bytes or more that its two
// ends have in common, and no other connection has.
//
// An error that another attempt would have as well is a *WrapError.
type Wrap func(conn net.Conn, isDialer bool, prove func(conn io.ReadWriter, binding []byte) error) (net.Conn, error)

// NewWrap makes a Wrap of the certificates in a directory. It is nil unless the program imports
// package transport/tcp/tls.
var NewWrap func(directory string) (Wrap, error)

// WrapBy returns the Wrap of the certificates in GOCCL_TLS_DIR, nil if that is "".
func WrapBy(directory string) (w Wrap, err error) {
	if directory == "" {
		return nil, nil
	}
	if NewWrap == nil {
		return nil, fmt.Errorf(`GOCCL_TLS_DIR=%s: the program does not import _ "github.com/goccl/goccl/transport/tcp/tls"`, directory)
	}
	if w, err = NewWrap(directory); err != nil {
		return nil, fmt.Errorf("GOCCL_TLS_DIR: %w", err)
	}
	return w, nil
}

// Unwrap returns the operating system's connection by which another one goes; nil if there is none.
func Unwrap(conn net.Conn) *net.TCPConn {
	if wrapped, isWrapped := conn.(interface{ NetConn() net.Conn }); isWrapped { // as those of TLS
		conn = wrapped.NetConn()
	}
	t, _ := conn.(*net.TCPConn)
	return t
}

// WrapError reports that a connection cannot be protected.
type WrapError struct{ Err error }

func (e *WrapError) Error() string { return e.Err.Error() }
func (e *WrapError) Unwrap() error { return e.Err }

// errBetween is the error of a protected connection whose other end is not that of the handshake.
var errBetween = errors.New("it has another secret within TLS: somebody is between the two, and reads what they send")

// wrapDialed protects a connection whose dialer has made the handshake, if this process does that.
func (id Identity) wrapDialed(conn net.Conn) (net.Conn, error) {
	if id.Wrap == nil {
		return conn, nil
	}
	return id.Wrap(conn, true, func(conn io.ReadWriter, binding []byte) error {
		_, failed := conn.Write(proof(id.Secret, roleDialer, binding, nil))
		return cmp.Or(id.check(conn, roleListener, binding), failed) // the other end may say why it has closed
	})
}

// wrapAccepted protects a connection whose listener has made the handshake. It calls admit before
// the dialer learns that it was accepted, as accept does.
func (id Identity) wrapAccepted(conn net.Conn, admit func() bool) (net.Conn, error) {
	return id.Wrap(conn, false, func(conn io.ReadWriter, binding []byte) error {
		err := id.check(conn, roleDialer, binding)
		if err == nil && !admit() {
			return errDropped
		}
		_, failed := conn.Write(proof(id.Secret, roleListener, binding, nil)) // of no use to who is between
		return cmp.Or(err, failed)
	})
}

// check reads the proof of the other end of a protected connection.
func (id Identity) check(conn io.Reader, role string, binding []byte) error {
	claimed := make([]byte, proofBytes)
	if _, err := io.ReadFull(conn, claimed); err != nil {
		return err
	}
	if !hmac.Equal(claimed, proof(id.Secret, role, binding, nil)) {
		return &WrapError{errBetween}
	}
	return nil
}
