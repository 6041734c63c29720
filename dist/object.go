package dist

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/internal/object"
	"github.com/goccl/goccl/transport"
)

// objectLimit is the default of WithObjectLimit.
const objectLimit = 64 << 20

// WithObjectLimit bounds the encoded length of each object of a call, in bytes; the
// default is 64 MiB. If ranks differ the lowest limit applies to all. 0 is ignored, and
// calls that do not carry objects ignore the option.
func WithObjectLimit(bytes int) CallOption { return CallOption{limit: bytes} }

// ObjectError reports that the arguments or the object of one rank, or of several alike, made a
// call of objects fail: all ranks get it, and the group is intact. On such a rank, Rank is the rank
// itself and Err is the cause; on others Err has its text.
type ObjectError struct {
	Operation string // such as "broadcast_object"
	Rank      int    // global
	Err       error
	ranks     []int // all that failed alike, global, ascending
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("dist: %s: %s: %s", e.Operation, transport.RanksText(e.ranks), ccl.Reason(e.Err))
}

// Unwrap returns the cause.
func (e *ObjectError) Unwrap() error { return e.Err }

// BroadcastObject copies rank src's *obj to *obj on all other ranks. Only the type must
// be known there, not the lengths of slices or the contents of maps. *obj is replaced as
// a whole; src's is unchanged.
//
// Objects are encoded by package encoding/gob, with its rules: exported fields, no
// functions or channels, gob.Register for values of interfaces. The types on two ranks
// may differ if gob converts one to the other.
//
// All ranks get the same object. What gob by itself leaves out arrives too: pointers to
// zero values, lists that are empty but not nil, nil maps in lists, negative zeros. An
// object that would lose something on its way cannot be encoded: a field that is not
// exported, a function or a channel must be zero, and a value of an interface must have
// the type that gob.Register was given. The error has the path to it.
//
// If an object cannot be encoded, contains itself, or exceeds WithObjectLimit, or if
// the arguments are invalid, all ranks get an *ObjectError that names the rank, and the
// group is intact. Only the ranks that cannot decode an object get that error. Lengths
// from other ranks are checked before memory is allocated. Decoding runs only the
// GobDecode and UnmarshalBinary methods of T's types, which is less than torch's pickle
// runs; but gob is not designed for hostile input, so peers must be trusted.
func BroadcastObject[T any](obj *T, src int, opts ...CallOption) error {
	c := prepareObjects("broadcast_object", opts)
	if c.err != nil {
		return c.err
	}

	root, err := c.member(src)
	var data []byte
	switch {
	case err != nil:
	case obj == nil:
		err = &InvalidArgumentError{Operation: c.operation, Message: "the pointer to the object is nil"}
	case c.comm.Rank() == root:
		data, err = object.Encode(*obj)
	}

	lengths, err := c.agree(data, err)
	if err != nil {
		return err
	}
	if c.comm.Rank() != root {
		data = make([]byte, lengths[root])
	}

	if err := c.failed(ccl.Broadcast(c.ctx, c.comm, data, root, c.opts[:]...)); err != nil || c.comm.Rank() == root {
		return err
	}
	theirs, err := decode[T](&c, root, data)
	if err != nil {
		return err
	}
	*obj = theirs
	return nil
}

// AllGatherObject returns the objects of all ranks, in rank order. Its errors are those of
// BroadcastObject.
func AllGatherObject[T any](obj T, opts ...CallOption) ([]T, error) {
	c := prepareObjects("all_gather_object", opts)
	if c.err != nil {
		return nil, c.err
	}
	data, err := object.Encode(obj)
	lengths, err := c.agree(data, err)
	if err != nil {
		return nil, err
	}

	all := make([]byte, sum(lengths))
	if err := c.failed(ccl.AllGatherV(c.ctx, c.comm, data, all, lengths, nil, c.opts[:]...)); err != nil {
		return nil, err
	}
	return decodeAll[T](&c, all, lengths)
}

// GatherObject returns the objects of all ranks, in rank order, on rank dst, and nil on the others.
// Its errors are those of BroadcastObject.
func GatherObject[T any](obj T, dst int, opts ...CallOption) ([]T, error) {
	c := prepareObjects("gather_object", opts)
	if c.err != nil {
		return nil, c.err
	}
	root, err := c.member(dst)
	var data []byte
	if err == nil {
		data, err = object.Encode(obj)
	}

	lengths, err := c.agree(data, err)
	if err != nil {
		return nil, err
	}
	if c.comm.Rank() != root {
		lengths = nil
	}
	all := make([]byte, sum(lengths))
	if err := c.failed(ccl.GatherV(c.ctx, c.comm, data, all, lengths, nil, root, c.opts[:]...)); err != nil || lengths == nil {
		return nil, err
	}
	return decodeAll[T](&c, all, lengths)
}

// ScatterObject returns rank src's objs[r] on rank r. src passes one object for each rank, the
// others none. Its errors are those of BroadcastObject.
func ScatterObject[T any](objs []T, src int, opts ...CallOption) (obj T, err error) {
	c := prepareObjects("scatter_object", opts)
	if c.err != nil {
		return obj, c.err
	}
	root, err := c.member(src)
	want := 0
	if c.comm.Rank() == root {
		want = c.comm.Size()
	}
	var all, longest []byte
	lengths := make([]int64, want) // of all objects, on the root
	switch {
	case err != nil:
	case len(objs) != want:
		err = &InvalidBufferSizeError{Operation: c.operation, Buffer: "objs", Expected: want, Actual: len(objs)}
	default:
		all, longest, err = encodeAll(objs, lengths)
	}

	if _, err := c.agree(longest, err); err != nil {
		return obj, err
	}
	length := make([]int64, 1)
	if err := c.failed(ccl.Scatter(c.ctx, c.comm, lengths, length, root, c.opts[:]...)); err != nil {
		return obj, err
	}

	if err := c.checkLength(root, length[0]); err != nil {
		return obj, err
	}
	data := make([]byte, length[0])
	if err := c.failed(ccl.ScatterV(c.ctx, c.comm, all, convertLengths(lengths), nil, data, root, c.opts[:]...)); err != nil {
		return obj, err
	}
	return decode[T](&c, root, data)
}

// AllToAllObject returns, in rank order, the objects that the ranks have for this one: objs[r] goes
// to rank r, so objs has one object for each rank. Its errors are those of BroadcastObject. torch
// has no such call.
func AllToAllObject[T any](objs []T, opts ...CallOption) ([]T, error) {
	c := prepareObjects("all_to_all_object", opts)
	if c.err != nil {
		return nil, c.err
	}
	var all, longest []byte
	lengths := make([]int64, c.comm.Size())
	var err error
	if len(objs) == len(lengths) {
		all, longest, err = encodeAll(objs, lengths)
	} else {
		err = &InvalidBufferSizeError{Operation: c.operation, Buffer: "objs", Expected: len(lengths), Actual: len(objs)}
	}

	if _, err := c.agree(longest, err); err != nil {
		return nil, err
	}
	received := make([]int64, len(lengths))
	if err := c.failed(ccl.AllToAll(c.ctx, c.comm, lengths, received, c.opts[:]...)); err != nil {
		return nil, err
	}
	for rank, n := range received {
		if err := c.checkLength(rank, n); err != nil {
			return nil, err
		}
	}

	counts := convertLengths(received)
	data := make([]byte, sum(counts))
	if err := c.failed(ccl.AllToAllV(c.ctx, c.comm, all, convertLengths(lengths), nil, data, counts, nil, c.opts[:]...)); err != nil {
		return nil, err
	}
	return decodeAll[T](&c, data, counts)
}

// objects is a call of objects.
type objects struct {
	call
	operation string
	limit     int // of each object; the lowest of all ranks after agree
}

func prepareObjects(operation string, opts []CallOption) objects {
	return objects{prepare(opts), operation, cmp.Or(merge(opts).limit, objectLimit)}
}

// failed adds the operation to the error of one of the call's collectives.
func (c *objects) failed(err error) error {
	if err == nil {
		return nil
	}
	return &explained{c.operation, ccl.Reason(err), []error{err}}
}

// member returns the group rank of a global rank, or -1 and *InvalidRootError.
func (c *objects) member(global int) (int, error) {
	root, err := c.group.GroupRank(global)
	if err != nil {
		return -1, c.group.outsider(c.operation, global)
	}
	return root, nil
}

// agree returns the lengths of all ranks' data. If any rank passes an error, all ranks
// return one: a rank that passed an error returns its own, the others the error of the first such
// rank.
func (c *objects) agree(data []byte, failed error) ([]int, error) {
	if failed == nil && c.limit < 0 {
		failed = &InvalidArgumentError{Operation: c.operation, Message: fmt.Sprintf("the limit of an object is %d bytes: give dist.WithObjectLimit a positive number", c.limit)}
	}
	if failed != nil {
		failed = &reasonOnly{failed} // ObjectError names the operation
	}
	all, err := agree.Exchange(c.ctx, c.comm, failed, []int{len(data), c.limit}, c.opts[:]...)
	if rejected, ok := errors.AsType[*agree.RejectedError](err); ok {
		rank := rejected.Ranks[0]
		if failed != nil {
			rank = c.comm.GlobalRank(c.comm.Rank())
		}
		return nil, &ObjectError{c.operation, rank, rejected.Err, rejected.Ranks}
	}
	if err != nil {
		return nil, c.failed(err)
	}

	lengths := make([]int, c.comm.Size())
	for r := range lengths {
		lengths[r] = all[2*r]
		c.limit = min(c.limit, all[2*r+1])
	}
	for r, n := range lengths {
		if n < 0 || n > c.limit {
			rank := c.comm.GlobalRank(r)
			return nil, &ObjectError{c.operation, rank, c.tooLong(n), []int{rank}}
		}
	}
	return lengths, nil
}

// tooLong is the error of an object of n bytes.
func (c *objects) tooLong(n int) error {
	return fmt.Errorf("the object has %d bytes, but the limit is %d: see dist.WithObjectLimit", n, c.limit)
}

// checkLength checks the length of an object that a rank announces.
func (c *objects) checkLength(rank int, n int64) error {
	if n < 0 || n > int64(c.limit) {
		return c.failed(fmt.Errorf("rank %d announces an object of %d bytes, but the limit is %d", rank, n, c.limit))
	}
	return nil
}

// encodeAll returns the encoded objects one after the other, and the longest by itself.
// It sets their lengths.
func encodeAll[T any](objs []T, lengths []int64) (all, longest []byte, err error) {
	for i, obj := range objs {
		data, err := object.Encode(obj)
		if err != nil {
			return nil, nil, fmt.Errorf("the object for rank %d: %w", i, err)
		}
		lengths[i] = int64(len(data))
		all = append(all, data...)
		if len(data) > len(longest) {
			longest = data
		}
	}
	return all, longest, nil
}

// decode decodes the object of a rank.
func decode[T any](c *objects, rank int, data []byte) (T, error) {
	obj, err := object.Decode[T](data, rank)
	return obj, c.failed(err)
}

// decodeAll decodes the objects of all ranks, which have these lengths.
func decodeAll[T any](c *objects, all []byte, lengths []int) ([]T, error) {
	objs, err := object.DecodeAll[T](all, lengths)
	return objs, c.failed(err)
}

func convertLengths(lengths []int64) (counts []int) {
	for _, n := range lengths {
		counts = append(counts, int(n))
	}
	return counts
}

func sum(lengths []int) (total int) {
	for _, n := range lengths {
		total += n
	}
	return total
}
