package dist

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"

	"github.com/goccl/goccl/ccl"
)

// objectLimit is how many bytes an object may have where WithObjectLimit says
// nothing else.
const objectLimit = 64 << 20

// WithObjectLimit bounds the encoded length of each object of a call, which is
// 64 MiB otherwise; where ranks differ the lowest bound counts for all. 0 leaves it
// as it is. Calls that move no objects ignore it.
func WithObjectLimit(bytes int) CallOption { return CallOption{limit: bytes} }

// ObjectError says that a call that moves objects failed on the arguments or the
// object of one rank: all ranks get it, and the group is unharmed. On that rank
// Err is the cause, on others its text.
type ObjectError struct {
	Operation string // such as "broadcast_object"
	Rank      int    // of the job
	Err       error
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("dist: %s: rank %d: %v", e.Operation, e.Rank, e.Err)
}

// Unwrap returns the cause.
func (e *ObjectError) Unwrap() error { return e.Err }

// BroadcastObject gives every rank rank src's *obj, in its own *obj. The others
// need to know nothing but the type: not how long a slice is, nor what a map holds.
// Theirs is replaced as a whole; src's is left alone.
//
// Objects travel as package encoding/gob writes them, with its rules: exported
// fields, no functions or channels, gob.Register for what an interface holds. The
// types of two ranks need not be the same, as long as gob converts one to the other.
//
// An object that cannot be encoded, holds itself, is longer than WithObjectLimit allows, or comes
// with arguments that are wrong, is an *ObjectError on all ranks, which names the
// rank and leaves the group unharmed. What cannot be decoded is an error on the
// ranks that cannot. Lengths that come from other ranks are checked before memory
// is allocated for them, and decoding runs no code but the GobDecode and
// UnmarshalBinary methods of T's own types, which is less than torch's pickle does;
// but gob is not made for hostile input, and peers have to be trusted.
func BroadcastObject[T any](obj *T, src int, opts ...CallOption) error {
	c, err := prepareObjects("broadcast_object", opts)
	if err != nil {
		return err
	}
	root, err := c.member(src)
	var data []byte
	switch {
	case err != nil:
	case obj == nil:
		err = &InvalidArgumentError{Operation: c.operation, Message: "the pointer to the object is nil"}
	case c.comm.Rank() == root:
		data, err = encode(*obj)
	}
	lengths, err := c.agree(data, err)
	if err != nil {
		return err
	}
	if c.comm.Rank() != root {
		data = make([]byte, lengths[root])
	}
	if err := c.failed(ccl.Broadcast(c.ctx, c.comm, data, root, c.opts[:c.n]...)); err != nil || c.comm.Rank() == root {
		return err
	}
	theirs, err := decode[T](&c, root, data)
	if err != nil {
		return err
	}
	*obj = theirs
	return nil
}

// AllGatherObject returns the objects of all ranks, in rank order. Its errors are
// those of BroadcastObject.
func AllGatherObject[T any](obj T, opts ...CallOption) ([]T, error) {
	c, err := prepareObjects("all_gather_object", opts)
	if err != nil {
		return nil, err
	}
	data, err := encode(obj)
	lengths, err := c.agree(data, err)
	if err != nil {
		return nil, err
	}
	all := make([]byte, sum(lengths))
	if err := c.failed(ccl.AllGatherV(c.ctx, c.comm, data, all, lengths, nil, c.opts[:c.n]...)); err != nil {
		return nil, err
	}
	return decodeAll[T](&c, all, lengths)
}

// GatherObject returns the objects of all ranks, in rank order, on rank dst, and
// nil on the others. Its errors are those of BroadcastObject.
func GatherObject[T any](obj T, dst int, opts ...CallOption) ([]T, error) {
	c, err := prepareObjects("gather_object", opts)
	if err != nil {
		return nil, err
	}
	root, err := c.member(dst)
	var data []byte
	if err == nil {
		data, err = encode(obj)
	}
	lengths, err := c.agree(data, err)
	if err != nil {
		return nil, err
	}
	if c.comm.Rank() != root {
		return nil, c.failed(ccl.GatherV(c.ctx, c.comm, data, nil, nil, nil, root, c.opts[:c.n]...))
	}
	all := make([]byte, sum(lengths))
	if err := c.failed(ccl.GatherV(c.ctx, c.comm, data, all, lengths, nil, root, c.opts[:c.n]...)); err != nil {
		return nil, err
	}
	return decodeAll[T](&c, all, lengths)
}

// ScatterObject gives rank r objs[r] of rank src, which has as many as there are
// ranks; on the others objs is empty. Its errors are those of BroadcastObject.
func ScatterObject[T any](objs []T, src int, opts ...CallOption) (obj T, err error) {
	c, err := prepareObjects("scatter_object", opts)
	if err != nil {
		return obj, err
	}
	root, err := c.member(src)
	want := 0
	if c.comm.Rank() == root {
		want = c.comm.Size()
	}
	var all, longest []byte
	lengths := make([]int64, want) // of all objects, where they are
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
	mine := make([]int64, 1)
	if err := c.failed(ccl.Scatter(c.ctx, c.comm, lengths, mine, root, c.opts[:c.n]...)); err != nil {
		return obj, err
	}
	if mine[0] < 0 || mine[0] > int64(c.limit) {
		return obj, c.failed(fmt.Errorf("rank %d announces an object of %d bytes, and %d are allowed", root, mine[0], c.limit))
	}
	var counts []int
	for _, n := range lengths {
		counts = append(counts, int(n))
	}
	data := make([]byte, mine[0])
	if err := c.failed(ccl.ScatterV(c.ctx, c.comm, all, counts, nil, data, root, c.opts[:c.n]...)); err != nil {
		return obj, err
	}
	return decode[T](&c, root, data)
}

// objects is a call that moves objects.
type objects struct {
	call
	operation string
	limit     int // on the length of each; of all ranks, once they have agreed
}

func prepareObjects(operation string, opts []CallOption) (c objects, err error) {
	c.operation = operation
	c.call, err = prepare(opts)
	if c.limit = merge(opts).limit; c.limit == 0 {
		c.limit = objectLimit
	}
	return c, err
}

// failed wraps the error of one of the collectives that a call is made of.
func (c *objects) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dist: %s: %w", c.operation, err)
}

// member returns the group rank of a global rank that has to be in the group.
func (c *objects) member(global int) (int, error) {
	root, err := c.group.GroupRank(global)
	if err != nil {
		return -1, &InvalidRootError{Root: global, Size: c.comm.Size()}
	}
	return root, nil
}

// agree tells all ranks how long everybody's data is, or that a rank, by its err,
// has none to send. Nothing else moves then: all ranks return the error of the
// first such rank, and those that have one themselves their own.
func (c *objects) agree(data []byte, err error) (lengths []int, _ error) {
	if err == nil && c.limit < 0 {
		err = &InvalidArgumentError{Operation: c.operation, Message: fmt.Sprintf("the limit of an object is %d bytes", c.limit)}
	}
	// A rank announces how long its data is, or, as a number below zero, its
	// excuse; and how long it lets data be.
	mine := []int64{int64(len(data)), int64(c.limit)}
	excuse := ""
	if err != nil {
		excuse = err.Error()
		excuse = excuse[:min(len(excuse), maxErrorText)]
		mine = []int64{-1 - int64(len(excuse)), int64(objectLimit)}
	}
	all := make([]int64, 2*c.comm.Size())
	if err := c.failed(ccl.AllGather(c.ctx, c.comm, mine, all, c.opts[:c.n]...)); err != nil {
		return nil, err
	}
	blamed := -1
	for r := range c.comm.Size() {
		lengths = append(lengths, int(all[2*r]))
		c.limit = min(c.limit, int(all[2*r+1]))
		if lengths[r] < 0 && blamed < 0 {
			blamed = r
		}
	}
	if blamed >= 0 {
		return nil, c.excuse(blamed, -1-lengths[blamed], excuse, err)
	}
	for r, n := range lengths {
		if n > c.limit {
			return nil, c.blame(r, fmt.Errorf(
				"the object has %d bytes, and %d are allowed: see dist.WithObjectLimit", n, c.limit))
		}
	}
	return lengths, nil
}

// maxErrorText is how many bytes of an error's text other ranks get to see.
const maxErrorText = 1 << 10

// excuse gives all ranks the text, of n bytes, by which one of them sends nothing.
// own is the caller's error, if it has one.
func (c *objects) excuse(rank, n int, text string, own error) error {
	theirs := make([]byte, min(n, maxErrorText))
	if rank == c.comm.Rank() {
		copy(theirs, text)
	}
	if err := c.failed(ccl.Broadcast(c.ctx, c.comm, theirs, rank, c.opts[:c.n]...)); err != nil {
		return err
	}
	if own != nil {
		return c.blame(c.comm.Rank(), own)
	}
	return c.blame(rank, errors.New(string(theirs)))
}

// blame names a rank of the group to all.
func (c *objects) blame(rank int, err error) error {
	global, _ := c.group.GlobalRank(rank) // it is in the group
	return &ObjectError{c.operation, global, err}
}

// parcel is what travels: gob leaves pointers and interfaces that are nil out of
// structs, and has no way to write them by themselves.
type parcel[T any] struct{ Object T }

func encode[T any](obj T) (data []byte, err error) {
	defer func() {
		if v := recover(); v != nil { // in a method of the object, or in gob
			err = fmt.Errorf("encoding a %v panicked: %v", reflect.TypeFor[T](), v)
		}
	}()
	if err := checkDepth(reflect.ValueOf(&obj).Elem()); err != nil {
		return nil, fmt.Errorf("encoding a %v: %w", reflect.TypeFor[T](), err)
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(parcel[T]{obj})
	return b.Bytes(), err
}

// encodeAll returns the objects one after the other, and the longest by itself. It
// sets their lengths.
func encodeAll[T any](objs []T, lengths []int64) (all, longest []byte, err error) {
	for i, obj := range objs {
		data, err := encode(obj)
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

// decode returns the object of a rank from its data.
func decode[T any](c *objects, rank int, data []byte) (obj T, err error) {
	defer func() {
		if v := recover(); v != nil { // in a method of the object
			err = c.failed(fmt.Errorf("decoding the object of rank %d panicked: %v", rank, v))
		}
	}()
	var p parcel[T]
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&p); err != nil {
		return obj, c.failed(fmt.Errorf("the object of rank %d cannot be decoded to a %v: %w", rank, reflect.TypeFor[T](), err))
	}
	return p.Object, nil
}

// decodeAll returns the objects of all ranks, whose data has these lengths.
func decodeAll[T any](c *objects, all []byte, lengths []int) ([]T, error) {
	objs := make([]T, len(lengths))
	at := 0
	for r, n := range lengths {
		var err error
		if objs[r], err = decode[T](c, r, all[at:at+n]); err != nil {
			return nil, err
		}
		at += n
	}
	return objs, nil
}

func sum(lengths []int) (total int) {
	for _, n := range lengths {
		total += n
	}
	return total
}
