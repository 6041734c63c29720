package dist

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// AnySource as the src of a receive matches a message of the tag from any rank.
//
// A rank that has left the group sends nothing more, and the receive waits for the others. Once all
// have left, or one has died, it fails with *PeerLostError. Its timeout, and a warning after half
// of it (WithLogger), name the ranks that have left, and those that wait for this one.
const AnySource = ccl.AnySource

// Send sends the tensor to rank dst, with a tag of 0 or more (torch's default is 0). It
// returns when the tensor may be reused. Depending on its length that is before the
// receiver is ready or not, so two ranks that exchange tensors should use SendRecv.
//
// Messages of one tag from one rank to another arrive in the order in which they were
// sent. Messages are independent of collectives, which may run at the same time, and
// several goroutines may send and receive at once. A rank may send to itself if another
// goroutine receives.
//
// A dst that is not in the group and a negative tag are rejected with
// *InvalidArgumentError. Other errors are *CollectiveFailedError; see ccl.Send for which
// of them leave the group intact.
func Send[T ccl.Element](tensor []T, dst, tag int, opts ...CallOption) error {
	c := prepare(opts)
	to := c.peer("send", dst)
	return c.result(ccl.Send(c.ctx, c.comm, tensor, to, tag, c.opts[:]...))
}

// Recv receives a message of the tag from rank src, or AnySource, into the tensor, and returns its
// sender.
//
// The message must have the tensor's type and length; otherwise the error is *MismatchError, and
// the message stays for the next Recv. Its other errors are those of Send. After an error the
// contents of the tensor are unspecified.
func Recv[T ccl.Element](tensor []T, src, tag int, opts ...CallOption) (source int, err error) {
	c := prepare(opts)
	from := c.peer("recv", src)
	source, err = ccl.Recv(c.ctx, c.comm, tensor, from, tag, c.opts[:]...)
	return c.sender(source, err)
}

// SendRecv sends input and receives into output at the same time, so that a cycle of
// ranks does not deadlock (MPI_Sendrecv; torch has no such call). It returns the sender of
// what it received.
//
// A src or dst that is not in the group, a negative tag, and output and input that overlap are
// rejected with *InvalidArgumentError. Its other errors are those of Send and Recv. After an error
// the contents of output are unspecified.
func SendRecv[T ccl.Element](output []T, src int, input []T, dst, tag int, opts ...CallOption) (source int, err error) {
	c := prepare(opts)
	from, to := c.peer("send_recv", src), c.peer("send_recv", dst)
	source, err = ccl.SendRecv(c.ctx, c.comm, input, to, output, from, tag, c.opts[:]...)
	return c.sender(source, err)
}

// Isend starts Send and returns its Work. Any number may run at once; they do not wait
// for asynchronous collectives.
func Isend[T ccl.Element](tensor []T, dst, tag int, opts ...CallOption) (*Work, error) {
	c := prepare(opts)
	return c.work(ccl.Isend(c.ctx, c.comm, tensor, c.root(dst), tag, c.opts[:]...))
}

// Irecv starts Recv and returns its Work, whose Source is the sender. A message goes to
// the earliest receive that matches it.
func Irecv[T ccl.Element](tensor []T, src, tag int, opts ...CallOption) (*Work, error) {
	c := prepare(opts)
	return c.work(ccl.Irecv(c.ctx, c.comm, tensor, c.root(src), tag, c.opts[:]...))
}

// P2POp is an operation of BatchIsendIrecv, made by SendOp or RecvOp.
type P2POp struct {
	start func(opts []CallOption) (*Work, error)
}

// SendOp returns an Isend for BatchIsendIrecv to start.
func SendOp[T ccl.Element](tensor []T, dst, tag int) P2POp {
	return P2POp{func(opts []CallOption) (*Work, error) { return Isend(tensor, dst, tag, opts...) }}
}

// RecvOp returns an Irecv for BatchIsendIrecv to start.
func RecvOp[T ccl.Element](tensor []T, src, tag int) P2POp {
	return P2POp{func(opts []CallOption) (*Work, error) { return Irecv(tensor, src, tag, opts...) }}
}

// BatchIsendIrecv starts all operations in order and returns their Works in the same
// order. The Work of an operation returns its error. A zero P2POp is rejected with
// *InvalidArgumentError before any operation starts.
func BatchIsendIrecv(ops []P2POp, opts ...CallOption) ([]*Work, error) {
	for i, op := range ops {
		if op.start == nil {
			return nil, &InvalidArgumentError{
				Operation: "dist.batch_isend_irecv",
				Message:   fmt.Sprintf("operation %d is empty: make it by dist.SendOp or dist.RecvOp", i),
			}
		}
	}
	works := make([]*Work, len(ops))
	for i, op := range ops {
		var err error
		if works[i], err = op.start(opts); err != nil {
			return works[:i], err // these continue
		}
	}
	return works, nil
}

// peer returns the group rank of a global rank, or AnySource. If the rank is not in the
// group, the call fails with an error that names operation.
func (c *call) peer(operation string, global int) int {
	if c.err != nil || global == AnySource {
		return global
	}
	rank, err := c.group.GroupRank(global)
	if bad, ok := errors.AsType[*InvalidArgumentError](err); ok {
		c.comm, c.err = nil, &InvalidArgumentError{Operation: operation, Message: bad.Message}
	}
	return rank
}

// sender returns the global rank of a message's sender, given as a group rank.
func (c *call) sender(rank int, err error) (int, error) {
	if err := c.result(err); err != nil {
		return 0, err
	}
	return c.comm.GlobalRank(rank), nil
}
