package dist

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// AnySource as the src of a receive takes the first message, of the tag, from
// whichever rank.
const AnySource = ccl.AnySource

// Send sends the tensor to rank dst, with a tag that is not negative (torch's
// default is 0). It returns when the tensor may be used again: that may be before it
// has been received, or not before it is being received, so two ranks that are to
// exchange tensors had better use SendRecv.
//
// Messages of one tag from one rank to another arrive in the order in which they were
// sent. They are apart from collectives, which may go on at the same time, and
// several goroutines may send and receive at once. A rank may send to itself what it
// receives by another call at the same time.
//
// A dst that is not in the group and a negative tag are refused with
// *InvalidArgumentError. It fails with *CollectiveFailedError; see ccl.Send for when
// the group lives on.
func Send[T ccl.Element](tensor []T, dst, tag int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	to, err := c.peer("send", dst)
	if err != nil {
		return err
	}
	return ccl.Send(c.ctx, c.comm, tensor, to, tag, c.opts[:c.n]...)
}

// Recv receives into the tensor a message from rank src, or AnySource, that was sent
// with the tag and has the type and length of the tensor, and returns who sent it.
//
// If the next message of the tag has another type or length, the error is
// *MismatchError, and the message is left to the next Recv. Otherwise its errors are
// those of Send; whenever it fails the contents of the tensor are unspecified.
func Recv[T ccl.Element](tensor []T, src, tag int, opts ...CallOption) (source int, err error) {
	c, err := prepare(opts)
	if err != nil {
		return 0, err
	}
	from, err := c.peer("recv", src)
	if err != nil {
		return 0, err
	}
	source, err = ccl.Recv(c.ctx, c.comm, tensor, from, tag, c.opts[:c.n]...)
	return c.sender(source, err)
}

// SendRecv does a Send of input and a Recv into output at the same time, so that no
// cycle of ranks that do so waits for each other. output and input are apart. torch
// has no such call, MPI calls it MPI_Sendrecv.
func SendRecv[T ccl.Element](output []T, src int, input []T, dst, tag int, opts ...CallOption) (source int, err error) {
	c, err := prepare(opts)
	if err != nil {
		return 0, err
	}
	from, err := c.peer("send_recv", src)
	if err != nil {
		return 0, err
	}
	to, err := c.peer("send_recv", dst)
	if err != nil {
		return 0, err
	}
	source, err = ccl.SendRecv(c.ctx, c.comm, input, to, output, from, tag, c.opts[:c.n]...)
	return c.sender(source, err)
}

// Isend begins a Send; see there and Work. Any number may be under way, and they are
// not in the queue of collectives.
func Isend[T ccl.Element](tensor []T, dst, tag int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	return ccl.Isend(c.ctx, c.comm, tensor, c.root(dst), tag, c.opts[:c.n]...), nil
}

// Irecv begins a Recv; see there and Work, whose Source says who sent the message. Of
// several that fit a message the one begun first gets it.
func Irecv[T ccl.Element](tensor []T, src, tag int, opts ...CallOption) (*Work, error) {
	c, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	from := src
	if src != AnySource {
		from = c.root(src)
	}
	var with [len(c.opts) + 1]ccl.CallOption
	n := copy(with[:], c.opts[:c.n])
	with[n] = ccl.WithGlobalSource()
	return ccl.Irecv(c.ctx, c.comm, tensor, from, tag, with[:n+1]...), nil
}

// P2POp is one of the operations of BatchIsendIrecv, made by SendOp or RecvOp.
type P2POp struct {
	start func(opts []CallOption) (*Work, error)
}

// SendOp is an Isend that has not begun.
func SendOp[T ccl.Element](tensor []T, dst, tag int) P2POp {
	return P2POp{func(opts []CallOption) (*Work, error) { return Isend(tensor, dst, tag, opts...) }}
}

// RecvOp is an Irecv that has not begun.
func RecvOp[T ccl.Element](tensor []T, src, tag int) P2POp {
	return P2POp{func(opts []CallOption) (*Work, error) { return Irecv(tensor, src, tag, opts...) }}
}

// BatchIsendIrecv begins all operations, in their order, and returns their Works in
// the same order. What is wrong with one is the error of its Work; an operation that
// was made by nobody is refused, with *InvalidArgumentError, before any has begun.
func BatchIsendIrecv(ops []P2POp, opts ...CallOption) ([]*Work, error) {
	for i, op := range ops {
		if op.start == nil {
			return nil, &InvalidArgumentError{
				Operation: "batch_isend_irecv",
				Message:   fmt.Sprintf("operation %d is empty: make it by dist.SendOp or dist.RecvOp", i),
			}
		}
	}
	works := make([]*Work, len(ops))
	for i, op := range ops {
		var err error
		if works[i], err = op.start(opts); err != nil {
			return works[:i], err // those that have begun go on
		}
	}
	return works, nil
}

// peer returns the group rank of a global rank, or AnySource. operation is the call that
// names it.
func (c *call) peer(operation string, global int) (int, error) {
	if global == AnySource {
		return AnySource, nil
	}
	rank, err := c.group.GroupRank(global)
	if bad, ok := errors.AsType[*InvalidArgumentError](err); ok {
		return 0, &InvalidArgumentError{Operation: operation, Message: bad.Message}
	}
	return rank, err
}

// sender returns the global rank of the sender of a message that has been received.
func (c *call) sender(rank int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return c.comm.GlobalRank(rank), nil
}
