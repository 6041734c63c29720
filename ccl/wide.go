package ccl

import "github.com/goccl/goccl/internal/reduce"

// A mean of float16 can be a float16 although the sum is not. Kernels that pass partial sums from
// rank to rank therefore get the inputs as float32: the engine copies them to memory of its own,
// and rounds the result once. A kernel that is AnyRunner has no messages, and its view holds sums
// as float32 by itself.

// isWide reports whether the kernel gets the float16 of a call as float32.
func (k *Kernel) isWide(s *Shape) bool { return s.Op == Avg && s.DType == Float16 && !k.AnyRunner }

// performWide is perform for a kernel that gets the inputs as float32.
func (e *engine) performWide(r *request) error {
	in, out, bytes := r.in, r.out, r.bytes
	n, at := in.Len(), in.Len()
	room := n + out.Len()
	if byte, isInPlace := find(out.data, in.data); isInPlace {
		at, room = byte>>in.shift, n
	}

	wide := e.spareBuffer(room, 2)
	r.in, r.out, r.bytes = wide.Slice(0, n), wide.Slice(at, at+out.Len()), 2*bytes
	reduce.WidenFloat16s(pointer(r.in.data), pointer(in.data), n)
	e.entry.Send, e.entry.Recv = r.in.data, r.out.data
	err := e.perform()

	e.scratch.wide = r.out
	r.in, r.out, r.bytes = in, out, bytes
	return err
}

// narrow stores the result of performWide as float16.
func (e *engine) narrow(r *request) {
	reduce.NarrowFloat16s(pointer(r.out.data), pointer(e.scratch.wide.data), r.out.Len())
}
