package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// storeClient is a client of torch's TCPStore, which keeps values by keys.
//
// A query is a byte for its kind, and its arguments: a number is 8 bytes, a text or value is its
// length and its bytes, all little-endian. Up to torch 2.0 the kinds count from 0. From 2.1 on, the
// first message of a connection is the kind 0 and a magic number, without an answer, and the others
// count from 1. A server of the older form would take that for a text of a gigabyte, and one of the
// newer form ignores or ends a connection that begins in another way. So the older form is tried
// first, unless the newer is known. (Source: pytorch's TCPStore.cpp, TCPStoreBackend.hpp and
// TCPStoreLibUvBackend.cpp.)
type storeClient struct {
	net.Conn
	stop  func() bool // of what closes it when its context ends
	shift byte        // of the kinds
}

// Kinds of queries, in the older form.
const (
	storeCompareSet = 1
	storeGet        = 2
	storeCheck      = 4
)

const (
	storeMagic = 0x3C85F7CE
	storeReady = 0 // the answer of a check if the key is there
	storeTime  = 10 * time.Second
	probeTime  = 3 * time.Second // for the first answer in the older form
	maxValue   = 4096            // of a value, in bytes
)

// dialStore connects to a store, in the form that it understands.
func dialStore(ctx context.Context, address string, isNew bool) (*storeClient, error) {
	var errs []error
	for shift, wait := range []time.Duration{probeTime, storeTime} {
		if isNew && shift == 0 {
			continue
		}
		dialer := net.Dialer{Timeout: storeTime}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}

		c := &storeClient{conn, context.AfterFunc(ctx, func() { _ = conn.Close() }), byte(shift)}
		if shift == 1 {
			_, err = conn.Write(binary.LittleEndian.AppendUint32([]byte{0}, storeMagic))
		}

		if err == nil {
			_, err = c.isSet("goccl", wait)
		}
		if err == nil {
			return c, nil
		}
		c.close()
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("it answers in no form of torch's store: %w", errors.Join(errs...))
}

// close ends the connection.
func (c *storeClient) close() {
	c.stop()
	_ = c.Close() // nothing was written that is not read
}

// query sends a query. Its answer has to come in that time.
func (c *storeClient) query(kind byte, wait time.Duration, arguments []byte) error {
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	_, err := c.Write(append([]byte{kind + c.shift}, arguments...))
	return err
}

// appendText appends an argument: a text or a value.
func appendText(b []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(text))), text...)
}

// readText reads the answer of a query for a value.
func readText(r io.Reader) (string, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxValue {
		return "", fmt.Errorf("a value of %d bytes", n)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return string(text), err
}

// isSet reports whether a key has a value.
func (c *storeClient) isSet(key string, wait time.Duration) (bool, error) {
	const keys = 1
	if err := c.query(storeCheck, wait, appendText(binary.LittleEndian.AppendUint64(nil, keys), key)); err != nil {
		return false, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return false, err
	}
	if answer[0] > 1 {
		return false, fmt.Errorf("%d as the answer of a check", answer[0])
	}
	return answer[0] == storeReady, nil
}

// get returns the value of a key, "" if it has none. Of a key without a value a store of the older
// form ends the connection.
func (c *storeClient) get(key string) (string, error) {
	if isSet, err := c.isSet(key, storeTime); !isSet {
		return "", err
	}
	if err := c.query(storeGet, storeTime, appendText(nil, key)); err != nil {
		return "", err
	}
	return readText(c)
}

// replace gives a key a value in place of another one, or of none, and returns the value that it
// has then.
func (c *storeClient) replace(key, before, value string) (string, error) {
	if err := c.query(storeCompareSet, storeTime, appendText(appendText(appendText(nil, key), before), value)); err != nil {
		return "", err
	}
	return readText(c)
}
