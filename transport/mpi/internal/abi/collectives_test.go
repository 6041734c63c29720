//go:build linux && (amd64 || arm64)

package abi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/transport"
)

// elements are the types with arithmetic: how long an element is, and how it holds a small number.
var elements = [...]struct {
	size int
	put  func(b []byte, v int)
}{
	transport.Uint8: {1, integer(1)}, transport.Int8: {1, integer(1)}, transport.Uint16: {2, integer(2)}, transport.Int16: {2, integer(2)},
	transport.Uint32: {4, integer(4)}, transport.Int32: {4, integer(4)}, transport.Uint64: {8, integer(8)}, transport.Int64: {8, integer(8)},
	transport.Float32: {4, putFloat32}, transport.Float64: {8, putFloat64}, transport.Complex64: {8, putFloat32}, transport.Complex128: {16, putFloat64},
}

func integer(size int) func([]byte, int) {
	return func(b []byte, v int) {
		for i := range size {
			b[i] = byte(v >> (8 * i))
		}
	}
}

func putFloat32(b []byte, v int) { binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v))) }
func putFloat64(b []byte, v int) { binary.LittleEndian.PutUint64(b, math.Float64bits(float64(v))) }

// encode returns a vector of numbers.
func encode(t transport.ElementType, v []int) []byte {
	e := elements[t]
	b := make([]byte, e.size*len(v))
	for i, n := range v {
		e.put(b[i*e.size:], n)
	}
	return b
}

// operations are what the library's operations do.
var operations = [...]func(a, b int) int{
	transport.Sum: func(a, b int) int { return a + b }, transport.Product: func(a, b int) int { return a * b },
	transport.Min: func(a, b int) int { return min(a, b) }, transport.Max: func(a, b int) int { return max(a, b) },
	transport.BAnd: func(a, b int) int { return a & b }, transport.BOr: func(a, b int) int { return a | b }, transport.BXor: func(a, b int) int { return a ^ b },
}

// has reports whether a type has an operation.
func has(t transport.ElementType, op transport.ReduceOp) bool {
	switch {
	case t >= transport.Complex64:
		return op == transport.Sum || op == transport.Product
	case t >= transport.Float32:
		return op <= transport.Max
	}
	return true
}

// inputOf returns what a rank brings.
func inputOf(rank, n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = (rank*5+i*i)%3 + 1 // whose product over four ranks is an int8
	}
	return v
}

// reduced returns the reduction of the inputs of some ranks.
func reduced(ranks, n int, op transport.ReduceOp) []int {
	v := inputOf(0, n)
	for rank := 1; rank < ranks; rank++ {
		for i, x := range inputOf(rank, n) {
			v[i] = operations[op](v[i], x)
		}
	}
	return v
}

// same returns an error if b is not a vector of these numbers.
func same(name string, b []byte, t transport.ElementType, want []int) error {
	if w := encode(t, want); !bytes.Equal(b, w) {
		return fmt.Errorf("%s of type %d: %x, want %x", name, t, b, w)
	}
	return nil
}

// collectives: all of them, of each type and operation, on the world; of two types on groups, since MPICH's blocking calls do not
// yield where ranks share a core.
func collectives(w *World) error {
	if err := collectivesOf(&w.Comm, transport.Uint8, transport.Complex128); err != nil {
		return fmt.Errorf("of all: %w", err)
	}
	ranks := make([]int, w.Size)
	for i := range ranks {
		ranks[i] = w.Size - 1 - i
	}
	backward, err := w.Group(ranks, 3)
	if err != nil {
		return err
	}
	if backward.Rank != w.Size-1-w.Rank || backward.Size != w.Size {
		return fmt.Errorf("rank %d of %d backward", backward.Rank, backward.Size)
	}
	// Two groups at once, of ranks that make them in different order.
	made := make(chan error)
	makeGroup := func(tag int) {
		c, err := w.Group(ranks, tag)
		if err == nil {
			err = errors.Join(collectivesOf(c, transport.Int64, transport.Float32), c.Free())
		}
		made <- err
	}
	for i := range 2 {
		go makeGroup(10 + (i+w.Rank)%2)
	}
	err = errors.Join(<-made, <-made, collectivesOf(backward, transport.Int64, transport.Float32), backward.Free())
	if err != nil || w.Size == 2 || w.Rank == 1 {
		return err
	}
	without, err := w.Group(slices.DeleteFunc(ranks, func(r int) bool { return r == 1 }), 0)
	if err != nil {
		return err
	}
	return errors.Join(collectivesOf(without, transport.Int64, transport.Float32), without.Free())
}

func collectivesOf(c *Comm, from, to transport.ElementType) error {
	for t := from; t <= to; t++ {
		if err := moves(c, t); err != nil {
			return err
		}
		if err := movesV(c, t); err != nil {
			return err
		}
		for op := range transport.BXor + 1 {
			if !has(t, op) {
				continue
			}
			if err := reductions(c, t, op); err != nil {
				return fmt.Errorf("operation %d: %w", op, err)
			}
		}
	}
	return errors.Join(c.Barrier(), c.AllReduce(nil, nil, 0, transport.Uint64, transport.Sum), c.Broadcast(nil, 0, transport.Uint8, 0), wrongCollective(c))
}

// wrongCollective: a mistake that the library finds is an error with a class.
func wrongCollective(c *Comm) error {
	one := make([]byte, 1)
	err := c.callCollective(mpiBcast, one, nil, 1, 5, // behind the check of Broadcast
		arguments{c.buffer(one), number(1), c.lib.types[transport.Uint8], number(c.Size), c.handle})
	if e, ok := errors.AsType[*Error](err); !ok || e.Function != "MPI_Bcast" || !strings.Contains(e.Text, "root") {
		return fmt.Errorf("a root that does not exist: %v", err)
	}
	if err := c.AllReduce(nil, nil, math.MaxInt32+1, transport.Uint8, transport.Sum); err != errCount {
		return fmt.Errorf("too many elements: %v", err)
	}
	return wrongNumbers(c)
}

// wrongNumbers: no rank reaches the library as another one, and no length as a shorter one.
func wrongNumbers(c *Comm) error {
	const t = transport.Uint8
	b := make([]byte, 8)
	for _, root := range []int{c.Size, -1, 1 << 32, 1<<32 + 1} {
		for what, err := range map[string]error{
			"Broadcast": c.Broadcast(b, 1, t, root), "Reduce": c.Reduce(b, b, 1, t, transport.Sum, root), "Gather": c.Gather(b, b, 1, t, root),
			"Scatter": c.Scatter(b, b, 1, t, root), "GatherV": c.GatherV(b, 1, b, unequal(c.Size), t, root), "ScatterV": c.ScatterV(b, unequal(c.Size), b, 1, t, root),
		} {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rank %d does not exist", root)) {
				return fmt.Errorf("%s, root %d: %v", what, root, err)
			}
		}
	}
	long := unequal(c.Size)
	long.Total = math.MaxInt32 + 1
	for what, err := range map[string]error{
		"ReduceScatterV": c.ReduceScatterV(b, b, long, t, transport.Sum), "AllGatherV": c.AllGatherV(b, 1, b, long, t), "GatherV": c.GatherV(b, 1, b, long, t, 0),
		"ScatterV": c.ScatterV(b, long, b, 1, t, 0), "AllToAllV": c.AllToAllV(b, long, b, unequal(c.Size), t), "AllToAllV to": c.AllToAllV(b, unequal(c.Size), b, long, t),
	} {
		if err != errCount {
			return fmt.Errorf("%s of too many elements: %v", what, err)
		}
	}
	return nil
}

func reductions(c *Comm, t transport.ElementType, op transport.ReduceOp) error {
	const n = 5
	in, all := encode(t, inputOf(c.Rank, n)), reduced(c.Size, n, op)
	out := make([]byte, len(in))
	if err := errors.Join(c.AllReduce(in, out, n, t, op), same("AllReduce", out, t, all)); err != nil {
		return err
	}
	copy(out, in)
	if err := errors.Join(c.AllReduce(InPlace, out, n, t, op), same("AllReduce in place", out, t, all)); err != nil {
		return err
	}
	if err := errors.Join(c.Scan(in, out, n, t, op), same("Scan", out, t, reduced(c.Rank+1, n, op))); err != nil {
		return err
	}
	if err := c.ExScan(in, out, n, t, op); err != nil {
		return err
	}
	if c.Rank > 0 {
		if err := same("ExScan", out, t, reduced(c.Rank, n, op)); err != nil {
			return err
		}
	}
	root := c.Size - 1
	first, last := in, []byte(nil)
	if c.Rank == root {
		copy(out, in)
		first, last = InPlace, out
	}
	if err := c.Reduce(first, last, n, t, op, root); err != nil {
		return err
	}
	if c.Rank == root {
		if err := same("Reduce", out, t, all); err != nil {
			return err
		}
	}
	blocks := encode(t, inputOf(c.Rank, c.Size*n))
	all = reduced(c.Size, c.Size*n, op)
	if err := errors.Join(c.ReduceScatter(blocks, out, n, t, op), same("ReduceScatter", out, t, all[c.Rank*n:(c.Rank+1)*n])); err != nil {
		return err
	}
	b := unequal(c.Size)
	blocks = encode(t, inputOf(c.Rank, total(b)))
	lo, hi := int(b.Displs[c.Rank]), int(b.Displs[c.Rank]+b.Counts[c.Rank])
	out = make([]byte, (hi-lo)*elements[t].size)
	return errors.Join(c.ReduceScatterV(blocks, out, b, t, op), same("ReduceScatterV", out, t, reduced(c.Size, total(b), op)[lo:hi]))
}

// unequal returns blocks of lengths 1, 2, ...
func unequal(size int) (b Blocks) {
	at := 0
	for i := range size {
		b.Counts, b.Displs = append(b.Counts, int32(i+1)), append(b.Displs, int32(at))
		at += i + 1
	}
	return b
}

func total(b Blocks) int { return int(b.Displs[len(b.Displs)-1] + b.Counts[len(b.Counts)-1]) }

// cut returns what inputOf(of) has at the block of a rank.
func cut(b Blocks, of, rank int) []int {
	return inputOf(of, total(b))[b.Displs[rank]:][:b.Counts[rank]]
}

func moves(c *Comm, t transport.ElementType) error {
	const n = 3
	size, root := elements[t].size, c.Size-1
	in := encode(t, inputOf(c.Rank, n))
	var each, blocks []int // of all ranks; for this one
	for rank := range c.Size {
		each = append(each, inputOf(rank, n)...)
		blocks = append(blocks, inputOf(rank, n*c.Size)[c.Rank*n:][:n]...)
	}
	b := slices.Clone(in)
	if err := errors.Join(c.Broadcast(b, n, t, root), same("Broadcast", b, t, inputOf(root, n))); err != nil {
		return err
	}
	all := make([]byte, c.Size*n*size)
	if err := errors.Join(c.AllGather(in, all, n, t), same("AllGather", all, t, each)); err != nil {
		return err
	}
	clear(all)
	copy(all[c.Rank*n*size:], in)
	if err := errors.Join(c.AllGather(InPlace, all, n, t), same("AllGather in place", all, t, each)); err != nil {
		return err
	}
	forAll := encode(t, inputOf(c.Rank, n*c.Size))
	if err := errors.Join(c.AllToAll(forAll, all, n, t), same("AllToAll", all, t, blocks)); err != nil {
		return err
	}
	clear(all)
	var whole, parts []byte // of the root
	if c.Rank == root {
		whole, parts = all, forAll
	}
	if err := c.Gather(in, whole, n, t, root); err != nil {
		return err
	}
	if c.Rank == root {
		if err := same("Gather", whole, t, each); err != nil {
			return err
		}
	}
	return errors.Join(c.Scatter(parts, b, n, t, root), same("Scatter", b, t, inputOf(root, n*c.Size)[c.Rank*n:][:n]))
}

func movesV(c *Comm, t transport.ElementType) error {
	size, root, b := elements[t].size, c.Size-1, unequal(c.Size)
	mine := c.Rank + 1
	in := encode(t, cut(b, c.Rank, c.Rank))
	var each, blocks []int
	var into Blocks
	for rank := range c.Size {
		each = append(each, cut(b, rank, rank)...)
		blocks = append(blocks, cut(b, rank, c.Rank)...)
		into.Counts, into.Displs = append(into.Counts, int32(mine)), append(into.Displs, int32(rank*mine))
	}
	all := make([]byte, total(b)*size)
	if err := errors.Join(c.AllGatherV(in, mine, all, b, t), same("AllGatherV", all, t, each)); err != nil {
		return err
	}
	forAll := encode(t, inputOf(c.Rank, total(b)))
	got := make([]byte, c.Size*mine*size)
	if err := errors.Join(c.AllToAllV(forAll, b, got, into, t), same("AllToAllV", got, t, blocks)); err != nil {
		return err
	}
	clear(all)
	var whole, parts []byte
	if c.Rank == root {
		whole, parts = all, forAll
	}
	if err := c.GatherV(in, mine, whole, b, t, root); err != nil {
		return err
	}
	if c.Rank == root {
		if err := same("GatherV", whole, t, each); err != nil {
			return err
		}
	}
	own := make([]byte, mine*size)
	return errors.Join(c.ScatterV(parts, b, own, mine, t, root), same("ScatterV", own, t, cut(b, root, c.Rank)))
}
