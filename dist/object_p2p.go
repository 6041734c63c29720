package dist

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/object"
)

// SendObject sends obj, encoded by package encoding/gob, to rank dst as one message with a tag of 0
// or more.
//
// See BroadcastObject for what gob encodes, and Send for when it returns and how it fails. An
// object that cannot be encoded, or exceeds WithObjectLimit, is not sent. Several goroutines may
// send and receive objects of one tag at once.
func SendObject[T any](obj T, dst, tag int, opts ...CallOption) error {
	c := prepareObjects("send_object", opts)
	to := c.peer(c.operation, dst)
	if c.err != nil {
		return c.err
	}

	data, err := object.Encode(obj)
	if err == nil && len(data) > c.limit {
		err = c.tooLong(len(data))
	}
	if err == nil {
		err = ccl.Send(c.ctx, c.comm, data, to, tag, c.opts[:]...)
	}
	return c.failed(err)
}

// RecvObject returns the next object that rank src, or AnySource, sent by SendObject with the tag,
// and its sender. An object that exceeds WithObjectLimit is a *MismatchError and stays for the next
// RecvObject, which may allow more. Its other errors are those of Recv.
//
// Use different tags for objects and for tensors of bytes: RecvObject receives either,
// and fails to decode a tensor. A tensor of another type is a *MismatchError.
func RecvObject[T any](src, tag int, opts ...CallOption) (obj T, source int, err error) {
	c := prepareObjects("recv_object", opts)
	from := c.peer(c.operation, src)
	if c.err != nil {
		return obj, 0, c.err
	}

	data, from, err := ccl.RecvBytes(c.ctx, c.comm, from, tag, c.limit, c.opts[:]...)
	if m, differs := errors.AsType[*MismatchError](err); differs && m.Field == "count" {
		return obj, 0, c.failed(fmt.Errorf("%w (the limit is %d bytes: see dist.WithObjectLimit)", &reasonOnly{err}, c.limit))
	}
	if err != nil {
		return obj, 0, c.failed(err)
	}
	if obj, err = decode[T](&c, from, data); err != nil {
		return obj, 0, err
	}
	source, err = c.sender(from, nil)
	return obj, source, err
}
