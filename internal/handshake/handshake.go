package handshake

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Opening is what a connection is for. Its dialer chooses it, and both sides prove that they mean
// it.
type Opening struct {
	Purpose  uint8
	Number   uint32 // among the connections of a purpose between two ranks
	From, To uint32 // ranks, of the dialer and of the listener
	Session  [16]byte
}

// Identity is what the processes of a job have, and others lack.
type Identity struct {
	Secret string
	Wrap   Wrap // nil: what is sent after the handshake is not protected
}

// Sizes of the messages, and their first bytes: the last of the magic is the version.
const (
	magic        = "GOCCL-\x00\x01"
	wrapOffset   = 9 // of 1 if the dialer protects what follows, otherwise 0
	nonceBytes   = 32
	nonceOffset  = 40
	openingBytes = nonceOffset + nonceBytes
	answerBytes  = len(magic) + nonceBytes
	proofBytes   = sha256.Size
)

// handshakeTime bounds a handshake.
const handshakeTime = 5 * time.Second

// Errors of Dial that another attempt would return as well.
var (
	ErrOtherSecret  = errors.New("it has another secret")
	ErrOtherProgram = errors.New("the program there is not goccl")
	ErrOtherWrap    = errors.New("GOCCL_TLS_DIR is set for one of the two only: set it for all ranks, or for none")
)

// VersionError reports that the other process speaks another version of the handshake.
type VersionError uint8

func (v VersionError) Error() string {
	return fmt.Sprintf("it speaks version %d of goccl's protocol, this program version %d: all need the same goccl", uint8(v), magic[len(magic)-1])
}

// IsFinal reports whether it makes no sense to dial again after an error of Dial.
func IsFinal(err error) bool {
	_, isVersion := errors.AsType[VersionError](err)
	_, isWrap := errors.AsType[*WrapError](err)
	return isVersion || isWrap || errors.Is(err, ErrOtherSecret) || errors.Is(err, ErrOtherProgram) || errors.Is(err, ErrOtherWrap)
}

// encode returns the opening message, without a wrap.
func (o Opening) encode() []byte {
	b := append(make([]byte, 0, openingBytes), magic...)
	b = append(b, o.Purpose, 0, 0, 0)
	for _, n := range []uint32{o.Number, o.From, o.To} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return newNonce(append(b, o.Session[:]...))
}

// decode returns the opening of a message whose sender has proved that it knows the secret.
func decode(b []byte) (o Opening) {
	b = b[len(magic):]
	o.Purpose, o.Number = b[0], binary.LittleEndian.Uint32(b[4:])
	o.From, o.To = binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	copy(o.Session[:], b[16:])
	return o
}

// newNonce appends a random number that was never used.
func newNonce(b []byte) []byte {
	n := len(b)
	b = append(b, make([]byte, nonceBytes)...)
	_, _ = rand.Read(b[n:]) // never fails
	return b
}

// checkMagic reports how a message begins that is not one of this package's.
func checkMagic(b []byte) error {
	version := len(magic) - 1
	switch {
	case !bytes.HasPrefix(b, []byte(magic[:version])):
		return ErrOtherProgram
	case b[version] != magic[version]:
		return VersionError(b[version])
	}
	return nil
}

// The roles of the two sides, to which a proof is bound.
const (
	roleDialer   = "goccl dialer"
	roleListener = "goccl listener"
)

// proof returns what only those who know the secret can make.
func proof(secret, role string, opening, answer []byte) []byte {
	key := sha256.Sum256([]byte(secret))
	h := hmac.New(sha256.New, key[:])
	for _, part := range [][]byte{[]byte(role), opening, answer} {
		h.Write(part)
	}
	return h.Sum(nil)
}

// Results of a handshake, before the listener's proof.
const (
	refused   = 0
	accepted  = 1
	otherWrap = 2
)

// wrapByte returns what an opening says of a Wrap.
func (id Identity) wrapByte() byte {
	if id.Wrap != nil {
		return 1
	}
	return 0
}

// dial makes the dialer's part of a handshake.
func dial(conn io.ReadWriter, id Identity, o Opening) error {
	opening := o.encode()
	opening[wrapOffset] = id.wrapByte()
	if _, err := conn.Write(opening); err != nil {
		return err
	}
	answer := make([]byte, answerBytes)
	if n, err := io.ReadFull(conn, answer); err != nil {
		if n > 0 && checkMagic(append(answer[:n:n], magic[min(n, len(magic)):]...)) != nil {
			return ErrOtherProgram
		}
		return err
	}

	if err := checkMagic(answer); err != nil {
		return err
	}
	if _, err := conn.Write(proof(id.Secret, roleDialer, opening, answer)); err != nil {
		return err
	}

	result := make([]byte, 1+proofBytes)
	switch _, err := io.ReadFull(conn, result); {
	case err != nil:
		return err
	case result[0] == otherWrap:
		return ErrOtherWrap
	case result[0] != accepted || !hmac.Equal(result[1:], proof(id.Secret, roleListener, opening, answer)):
		return ErrOtherSecret
	}
	return nil
}

// errDropped is the error of a connection that was dropped for another one.
var errDropped = errors.New("it was slow while many others came")

// accept makes the listener's part of a handshake. It decodes nothing that somebody has sent who
// does not know the secret. It calls admit when the dialer has proved that it does, before it says
// so to the dialer, and refuses the connection if that returns false.
func accept(conn io.ReadWriter, id Identity, admit func() bool) (o Opening, err error) {
	opening := make([]byte, openingBytes)
	if _, err := io.ReadFull(conn, opening); err != nil {
		return o, err
	}
	err = checkMagic(opening)
	if errors.Is(err, ErrOtherProgram) {
		return o, err
	}

	answer := newNonce([]byte(magic))
	if _, failed := conn.Write(answer); err != nil || failed != nil {
		return o, errors.Join(err, failed)
	}

	claimed, result := make([]byte, proofBytes), make([]byte, 1+proofBytes)
	if _, err := io.ReadFull(conn, claimed); err != nil {
		return o, err
	}

	switch {
	case !hmac.Equal(claimed, proof(id.Secret, roleDialer, opening, answer)):
		err = ErrOtherSecret
	case opening[wrapOffset] != id.wrapByte():
		err, result[0] = ErrOtherWrap, otherWrap
	case !admit():
		return o, errDropped
	default:
		result = append([]byte{accepted}, proof(id.Secret, roleListener, opening, answer)...)
		o = decode(opening)
	}

	if _, failed := conn.Write(result); failed != nil {
		return o, failed
	}
	return o, err
}

// Dial connects to an address and makes the dialer's part of the handshake. from, unless nil, is
// the address from which it dials.
func Dial(ctx context.Context, address string, from net.IP, id Identity, o Opening) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()

	var dialer net.Dialer
	if from != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: from}
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}

	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	wrapped := conn
	if err = dial(conn, id, o); err == nil {
		wrapped, err = id.wrapDialed(conn)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}

	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return wrapped, nil
}
