package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// box is a set of calls: the product of one set per dimension. For a collective without an
// operation, the operations are ignored.
type box [6]set

// The dimensions of a box.
const (
	collectives = iota
	dtypes
	ops
	bytes
	ranks
	nodes
)

// set is a set of names, as bits in which lo and hi are 0, or an interval that includes both
// ends, in which names is 1.
type set struct {
	names  uint64
	lo, hi int
}

func setOf[T ~uint8 | ~uint64](values ...T) (s set) {
	for _, v := range values {
		s.names |= 1 << v
	}
	return s
}

func (s set) empty() bool { return s.names == 0 || s.lo > s.hi }

func (s set) and(t set) set { return set{s.names & t.names, max(s.lo, t.lo), min(s.hi, t.hi)} }

func (s set) hull(t set) set { return set{s.names | t.names, min(s.lo, t.lo), max(s.hi, t.hi)} }

// minus returns s without t in disjoint pieces, of which some are empty.
func (s set) minus(t set) [3]set {
	return [3]set{
		{s.names &^ t.names, s.lo, s.hi},
		{s.names, s.lo, min(s.hi, t.lo-1)},
		{s.names, max(s.lo, t.hi+1), s.hi},
	}
}

// noLimit is the end of open intervals. The next number does not overflow.
const noLimit = math.MaxInt - 1

// allCalls are the calls that need a kernel.
var allCalls = box{
	collectives: setOf(ccl.Collectives()...),
	dtypes:      setOf(ccl.DTypes()...),
	ops:         setOf(ccl.Ops()...),
	bytes:       {1, 0, noLimit},
	ranks:       {1, 1, MaxRanks},
	nodes:       {1, 1, maxNodes},
}

// boxes returns the calls that the rule, which chooses the algorithm a, matches, in disjoint
// boxes: one for each of its ranges of bytes on each of its ranges of ranks and of nodes.
func (r *rule) boxes(a *ccl.Algorithm) []box {
	b := allCalls
	b[collectives] = setOf(slices.DeleteFunc(ccl.Collectives(), func(c ccl.Collective) bool { return !r.takes(c, a) })...)
	if r.dtype.isSet() {
		b[dtypes] = setOf(r.dtype.value...)
	}
	if r.op.isSet() {
		b[ops] = setOf(r.op.value...)
	}
	return along(nodes, r.nodes.value, along(ranks, r.ranks.value, along(bytes, r.bytes.value, []box{b})))
}

// along cuts boxes along a dimension into one for each of the ranges, if any.
func along[T int | ccl.ByteSize](dimension int, spans []span[T], boxes []box) (cut []box) {
	if len(spans) == 0 {
		return boxes
	}
	for _, b := range boxes {
		for _, s := range setsOf(spans) {
			piece := b
			piece[dimension] = b[dimension].and(s)
			cut = append(cut, piece)
		}
	}
	return cut
}

func setsOf[T int | ccl.ByteSize](spans []span[T]) []set {
	sets := make([]set, len(spans))
	for i, s := range spans {
		sets[i] = set{1, int(s.min), int(s.max)}
		if s.open {
			sets[i].hi = noLimit
		}
	}
	return sets
}

func (b box) and(c box) box {
	for d := range b {
		b[d] = b[d].and(c[d])
	}
	return b
}

func (b box) empty() bool { return slices.ContainsFunc(b[:], set.empty) || b.tooFewRanks() }

// tooFewRanks reports whether no group can make the calls. A group with two levels has more ranks
// than nodes; any other counts as on one node.
func (b box) tooFewRanks() bool { return b[nodes].lo > 1 && b[ranks].hi <= b[nodes].lo }

func (b box) meets(c box) bool { return !b.and(c).empty() }

// minus appends b without c to boxes, in disjoint pieces cut along one dimension after the
// other.
func (b box) minus(c box, boxes []box) []box {
	switch {
	case b.empty():
		return boxes
	case !b.meets(c):
		return append(boxes, b)
	}
	for d := range b {
		for _, rest := range b[d].minus(c[d]) {
			piece := b
			piece[d] = rest
			if !rest.empty() && !piece.tooFewRanks() {
				boxes = append(boxes, piece)
			}
		}
		b[d] = b[d].and(c[d])
	}
	return boxes
}

func (b box) within(c box) bool { return len(b.minus(c, nil)) == 0 }

// plus returns the union of b and c, and whether that is a box.
func (b box) plus(c box) (box, bool) {
	sum := b
	for d := range sum {
		sum[d] = b[d].hull(c[d])
	}
	rest := sum.minus(b, nil)
	return sum, len(rest) == 0 || len(rest) == 1 && rest[0].within(c)
}

// String describes the calls and leaves out the dimensions that are not restricted:
// "all_reduce of float32 of 1MiB- bytes on 3-8 ranks on 2- nodes".
func (b box) String() string {
	text := namesOf(b[collectives], ccl.Collectives())
	if b[dtypes] != allCalls[dtypes] {
		text += " of " + namesOf(b[dtypes], ccl.DTypes())
	}
	if b[ops] != allCalls[ops] {
		text += " by " + namesOf(b[ops], ccl.Ops())
	}
	if s := b[bytes]; s != allCalls[bytes] {
		text += fmt.Sprintf(" of %v bytes", span[ccl.ByteSize]{ccl.ByteSize(s.lo), ccl.ByteSize(s.hi), s.hi == allCalls[bytes].hi})
	}
	return text + b.on(ranks, "ranks") + b.on(nodes, "nodes")
}

// on describes a number: " on 3-8 ranks", "" if it is not restricted.
func (b box) on(dimension int, plural string) string {
	s := b[dimension]
	if s == allCalls[dimension] {
		return ""
	}
	if s.hi == 1 {
		plural = strings.TrimSuffix(plural, "s")
	}
	return fmt.Sprintf(" on %v %s", span[int]{s.lo, s.hi, s.hi == allCalls[dimension].hi}, plural)
}

// namesOf lists the values in s: "sum, min or max".
func namesOf[T interface {
	~uint8 | ~uint64
	fmt.Stringer
}](s set, values []T) string {
	var names []string
	for _, v := range values {
		if s.names&(1<<v) != 0 {
			names = append(names, v.String())
		}
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
