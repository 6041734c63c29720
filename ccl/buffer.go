package ccl

// Buffer is a run of elements of one type: a rank's input, its output, or a part
// of them. A zero Buffer is empty. Kernels cut Buffers and hand them to verbs;
// lengths and positions are in elements.
type Buffer struct {
	data  []byte
	shift uint8 // an element has 1<<shift bytes
}

// Len returns the number of elements.
func (b Buffer) Len() int { return len(b.data) >> b.shift }

// Bytes returns the memory itself, for kernels that look at or change it by
// other means than verbs.
func (b Buffer) Bytes() []byte { return b.data }

// Slice returns the elements lo to hi, 0 <= lo <= hi <= Len.
func (b Buffer) Slice(lo, hi int) Buffer {
	return Buffer{data: b.data[lo<<b.shift : hi<<b.shift : hi<<b.shift], shift: b.shift}
}

// Block returns block i of the n into which the buffer is cut, 0 <= i < n. Their
// lengths differ by at most one element, the longer ones first.
func (b Buffer) Block(i, n int) Buffer {
	lo, hi := BlockRange(b.Len(), i, n)
	return b.Slice(lo, hi)
}

// BlockRange returns where part i of n begins and ends when count things are dealt
// out evenly: the first count mod n parts get one more than the others.
func BlockRange(count, i, n int) (lo, hi int) {
	q, r := count/n, count%n
	lo = i*q + min(i, r)
	hi = lo + q
	if i < r {
		hi++
	}
	return lo, hi
}
