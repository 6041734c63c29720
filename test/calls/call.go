package calls

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
)

// Call is one call that all ranks of a group make.
type Call struct {
	Coll    ccl.Collective
	Ranks   int
	DType   ccl.DType
	Op      ccl.Op  // of a reduction
	Count   int     // elements of a vector
	Root    int     // of a rooted collective
	Counts  []int   // lengths of blocks, if each rank has one
	Matrix  [][]int // all-to-all: the number of elements from each rank for each rank
	Tensors []int   // of a coalesced all-reduce, which works in place: the lengths that Count is made of
	VForm   bool    // the form for unequal blocks is used, even for equal ones
	Places  Places  // arrangement of blocks, where the collective allows any
	Numbers Numbers // kind of inputs
	Placing Placing // ranks that work in place
	Shift   int     // elements between the fence and the buffer
	Salt    uint64  // makes the inputs differ from those of other calls

	isLone bool // all inputs are zero, except those of rank only
	only   int

	once    interleave.Once
	answers any        // once computed, an *answers[T]
	Results [][]uint64 // bits of each rank's result, where checks compare them
}

// New returns a call of about count elements: in a vector, or in all blocks of one input together.
// k selects everything else; in groups of n ranks k and k+n have the same root.
func New(coll ccl.Collective, n int, d ccl.DType, op ccl.Op, count, k int) *Call {
	h := Mix(uint64(k))
	c := &Call{Coll: coll, Ranks: n, DType: d, Count: count, Root: k % n, VForm: h>>16%4 == 0}
	if coll.Traits().Reduces {
		c.Op = op
	}
	style, who := int(h%4), int(h>>8%uint64(n))
	switch {
	case c.isMatrix():
		for from := range n {
			c.Matrix = append(c.Matrix, deal(count, n, style, who))
			if style > 0 { // no two rows are equal
				style, who = 1+style%3, (who+from)%n
			}
		}
	case c.hasBlocks():
		c.Counts = deal(count, n, style, who)
	}
	return c
}

// deal divides about count elements among n ranks: evenly in style 0, otherwise not.
func deal(count, n, style, who int) []int {
	counts := make([]int, n)
	for r := range counts {
		lo, hi := ccl.BlockRange(count, r, n)
		switch style {
		case 0:
			counts[r] = max(count/n, min(count, 1))
		case 1:
			counts[r] = hi - lo
		case 2: // all to one rank
			counts[who] = count
		case 3: // from almost none to twice the average
			counts[(who+r)%n] = (hi-lo)*2*r/n + (r+who)%2
		}
	}
	if style == 3 && total(counts) == 0 {
		counts[who] = count
	}
	return counts
}

// isMatrix reports whether each rank has a block for each.
func (c *Call) isMatrix() bool {
	return c.Coll.Traits().Input == ccl.RankBlocks && c.Coll.Traits().Output == ccl.RankBlocks
}

func (c *Call) hasBlocks() bool {
	return c.Coll.Traits().Input != ccl.Vector || c.Coll.Traits().Output != ccl.Vector
}

// EqualBlocks reports whether all blocks have the same length.
func (c *Call) EqualBlocks() bool {
	rows := append(slices.Clone(c.Matrix), c.Counts)
	all := slices.Concat(rows...)
	return len(all) == 0 || slices.Min(all) == slices.Max(all)
}

// IsEven reports whether the call is made in the form for blocks of equal length.
func (c *Call) IsEven() bool {
	return !c.VForm && c.EqualBlocks() && c.places() == Packed
}

func (c *Call) String() string {
	text := fmt.Sprintf("%v of %v", c.Coll, c.DType)
	if c.Coll.Traits().Reduces {
		text += fmt.Sprintf(", %v", c.Op)
	}

	switch {
	case c.Coll == ccl.CollBarrier:
		return c.Coll.String()
	case c.Tensors != nil:
		text += fmt.Sprintf(" of tensors %v", c.Tensors)
	case c.Matrix != nil && c.EqualBlocks():
		text += fmt.Sprintf(", blocks of %d", c.Matrix[0][0])
	case c.Matrix != nil:
		text += fmt.Sprintf(", counts %v", c.Matrix)
	case c.Counts != nil:
		text += fmt.Sprintf(", counts %v", c.Counts)

	case c.Coll.Traits().Reduces:
		text += fmt.Sprintf(" of %d elements", c.Count)
	default:
		text += fmt.Sprintf(", %d elements", c.Count)
	}

	switch {
	case c.Coll.Traits().FromRoot:
		text += fmt.Sprintf(" from root %d", c.Root)
	case c.Coll.Traits().Rooted:
		text += fmt.Sprintf(" to root %d", c.Root)
	}

	if c.Counts != nil || c.Matrix != nil {
		if !c.IsEven() {
			text += ", in the form for unequal blocks"
		}
		if c.Coll != ccl.CollReduceScatter {
			text += [...]string{"", ", with gaps", ", with gaps, in reverse order", ", with gaps, each rank in its own order"}[c.Places]
		}
	}

	text += [...]string{"", ", in place", ", in place on even ranks", ", in place on odd ranks"}[c.Placing]
	if c.Shift > 0 {
		text += fmt.Sprintf(", %d elements off", c.Shift)
	}
	return text + [...]string{"", ", floats that round", ", with NaN, infinities and -0", ", whose sums are too large for float16"}[c.Numbers]
}

// Shape returns the shape that the engine passes to a kernel's Supports, without what the group
// adds to it.
func (c *Call) Shape() ccl.Shape {
	longest, most := 0, 0
	for r := range c.Ranks {
		longest = max(longest, c.input(r).elements())
		most = max(most, c.output(r).elements())
	}
	size, op := c.DType.Size(), c.Op
	if op == Premul {
		op = ccl.Sum // inputs are multiplied before the kernel sees them
	}
	return ccl.Shape{Collective: c.Coll, Ranks: c.Ranks, Bytes: longest * size, Total: most * size, DType: c.DType, Op: op}
}

// Clone returns the same call, whose inputs and results are not computed yet.
func (c *Call) Clone() *Call {
	return &Call{
		Coll: c.Coll, Ranks: c.Ranks, DType: c.DType, Op: c.Op, Count: c.Count, Root: c.Root, Counts: c.Counts, Matrix: c.Matrix,
		Tensors: c.Tensors, VForm: c.VForm, Places: c.Places, Numbers: c.Numbers, Placing: c.Placing, Shift: c.Shift, Salt: c.Salt,
	}
}

// On returns a call like c on n ranks, with exact inputs and packed blocks of equal length.
func (c *Call) On(n int) *Call {
	like := &Call{Coll: c.Coll, Ranks: n, DType: c.DType, Op: c.Op, Count: c.Count, Root: min(c.Root, n-1)}
	length := c.Count
	if c.Coll.Traits().Input == ccl.RankBlocks {
		length /= n
	}
	switch {
	case c.Matrix != nil:
		length = c.Matrix[0][0]
	case c.Counts != nil:
		length = c.Counts[0]
	}

	each := slices.Repeat([]int{length}, n)
	switch {
	case c.isMatrix():
		like.Matrix = slices.Repeat([][]int{each}, n)
	case c.hasBlocks():
		like.Counts = each
	}
	return like
}

// Alone returns a call like c in which only one rank has inputs that are not zero; -1: none. A
// reduction becomes a sum, and of bools, which have none, an exclusive or.
func (c *Call) Alone(only int) *Call {
	like := c.Clone()
	like.Numbers, like.Salt, like.isLone, like.only = Exact, 0, true, only
	if c.Coll.Traits().Reduces {
		like.Op = ccl.Sum
		if c.DType == ccl.Bool {
			like.Op = ccl.LXor
		}
	}
	return like
}

// Longer returns a call like c.Alone with two elements in each block, or for each rank if it has no
// blocks. It is nil if c has as many.
func (c *Call) Longer() *Call {
	const each = 2
	isShort := func(n int) bool { return n < each }
	like := c.Alone(0)
	switch {
	case slices.ContainsFunc(slices.Concat(c.Matrix...), isShort):
		like.Matrix = slices.Repeat([][]int{slices.Repeat([]int{each}, c.Ranks)}, c.Ranks)
	case slices.ContainsFunc(c.Counts, isShort):
		like.Counts = slices.Repeat([]int{each}, c.Ranks)
	case c.Matrix == nil && c.Counts == nil && c.Count < each*c.Ranks:
		like.Count = each * c.Ranks

	default:
		return nil
	}
	return like
}

// Mix hashes x: close numbers become very different ones (the finalizer of SplitMix64, S. Vigna).
// The choice of calls depends on it, and so which mutants the suite finds.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
