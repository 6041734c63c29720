package dist

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// SendObject sends obj to rank dst, with a tag that is not negative: its length, and
// then what package encoding/gob makes of it, two messages of that tag. See
// BroadcastObject for what gob writes, and Send for when it returns and how it fails.
// An object that cannot be encoded, or is longer than WithObjectLimit allows, is not
// sent.
func SendObject[T any](obj T, dst, tag int, opts ...CallOption) error {
	c, err := prepareObjects("send_object", opts)
	if err != nil {
		return err
	}
	to, err := c.peer(dst)
	if err != nil {
		return err
	}
	data, err := encode(obj)
	if err == nil && len(data) > c.limit {
		err = fmt.Errorf("the object has %d bytes, and %d are allowed: see dist.WithObjectLimit", len(data), c.limit)
	}
	if err == nil {
		err = ccl.Send(c.ctx, c.comm, []int64{int64(len(data))}, to, tag, c.opts[:c.n]...)
	}
	if err == nil {
		err = ccl.Send(c.ctx, c.comm, data, to, tag, c.opts[:c.n]...)
	}
	return c.failed(err)
}

// RecvObject returns the object that rank src, or AnySource, has sent by SendObject with
// the tag, and who it was. One that is longer than WithObjectLimit allows is an error,
// and its data is left where it is: better give receivers the higher limit. Its other
// errors are those of Recv.
//
// Tensors and objects had better have tags of their own, since what is not a length is
// refused as one of another type.
func RecvObject[T any](src, tag int, opts ...CallOption) (obj T, source int, err error) {
	c, err := prepareObjects("recv_object", opts)
	if err != nil {
		return obj, 0, err
	}
	from, err := c.peer(src)
	if err != nil {
		return obj, 0, err
	}
	length := make([]int64, 1)
	if from, err = ccl.Recv(c.ctx, c.comm, length, from, tag, c.opts[:c.n]...); err != nil {
		return obj, 0, c.failed(err)
	}
	if length[0] < 0 || length[0] > int64(c.limit) {
		return obj, 0, c.failed(fmt.Errorf("rank %d announces an object of %d bytes, and %d are allowed: see dist.WithObjectLimit",
			from, length[0], c.limit))
	}
	data := make([]byte, length[0])
	if _, err = ccl.Recv(c.ctx, c.comm, data, from, tag, c.opts[:c.n]...); err != nil {
		return obj, 0, c.failed(err)
	}
	if obj, err = decode[T](&c, from, data); err != nil {
		return obj, 0, err
	}
	source, err = c.sender(from, nil)
	return obj, source, err
}
