package ccl

// Buffer is consecutive elements of one type: a rank's input, its output, or a part of them. The
// zero Buffer is empty. Kernels cut Buffers and pass them to verbs. Lengths and positions are in
// elements.
type Buffer struct {
	data  []byte
	shift uint8 // an element has 1<<shift bytes
}

// Len returns the number of elements.
func (b Buffer) Len() int { return len(b.data) >> b.shift }

// Bytes returns the memory itself, for kernels that read or write it without verbs.
func (b Buffer) Bytes() []byte { return b.data }

// Slice returns the elements lo to hi, 0 <= lo <= hi <= Len.
func (b Buffer) Slice(lo, hi int) Buffer {
	return Buffer{data: b.data[lo<<b.shift : hi<<b.shift : hi<<b.shift], shift: b.shift}
}

// Block cuts the buffer into n blocks and returns block i, 0 <= i < n. The lengths of the blocks
// differ by at most one element; the longer ones come first.
func (b Buffer) Block(i, n int) Buffer {
	lo, hi := BlockRange(b.Len(), i, n)
	return b.Slice(lo, hi)
}

// BlockRange divides count elements into n blocks and returns the range of block i, from lo to
// before hi. The first count mod n blocks have one element more than the others.
func BlockRange(count, i, n int) (lo, hi int) {
	q, r := count/n, count%n
	lo = i*q + min(i, r)
	hi = lo + q
	if i < r {
		hi++
	}
	return lo, hi
}
