package config

import (
	"fmt"
	"math"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// box is a set of calls: those that lie in all five dimensions. Sets of names are
// bits by their numbers; intervals hold both of their ends. Where a collective
// takes no operation its calls count with every operation alike.
type box struct {
	collectives, dtypes, ops uint64
	bytes, ranks             interval
}

type interval struct{ lo, hi int }

// allCalls are those for which a kernel is chosen.
var allCalls = box{
	collectives: bitsOf(ccl.Collectives()),
	dtypes:      bitsOf(ccl.DTypes()),
	ops:         bitsOf(ccl.Ops()),
	bytes:       interval{0, math.MaxInt},
	ranks:       interval{1, MaxRanks},
}

func bitsOf[T ~uint8 | ~uint64](values []T) (bits uint64) {
	for _, v := range values {
		bits |= 1 << v
	}
	return bits
}

// box returns the calls that the rule, which chooses the algorithm a, matches.
func (r *rule) box(a *ccl.Algorithm) box {
	b := allCalls
	b.collectives = 0
	for _, c := range ccl.Collectives() {
		if r.takes(c, a) {
			b.collectives |= 1 << c
		}
	}
	if r.dtype.isSet() {
		b.dtypes = 1 << r.dtype.value
	}
	if r.op.isSet() {
		b.ops = 1 << r.op.value
	}
	if s := r.bytes.value; r.bytes.isSet() {
		b.bytes.lo = int(s.min)
		if !s.open {
			b.bytes.hi = int(s.max)
		}
	}
	if s := r.ranks.value; r.ranks.isSet() {
		b.ranks.lo = max(s.min, b.ranks.lo)
		if !s.open {
			b.ranks.hi = s.max
		}
	}
	return b
}

func (b box) meets(c box) bool {
	return b.collectives&c.collectives != 0 && b.dtypes&c.dtypes != 0 && b.ops&c.ops != 0 &&
		b.bytes.meets(c.bytes) && b.ranks.meets(c.ranks)
}

func (i interval) meets(j interval) bool { return i.lo <= j.hi && j.lo <= i.hi }

// minus appends what is in b and not in c to boxes, cut along one dimension after
// the other.
func (b box) minus(c box, boxes []box) []box {
	if !b.meets(c) {
		return append(boxes, b)
	}
	for _, set := range []func(*box) *uint64{
		func(x *box) *uint64 { return &x.collectives },
		func(x *box) *uint64 { return &x.dtypes },
		func(x *box) *uint64 { return &x.ops },
	} {
		part := b
		if *set(&part) &^= *set(&c); *set(&part) != 0 {
			boxes = append(boxes, part)
		}
		*set(&b) &= *set(&c)
	}
	for _, side := range []func(*box) *interval{
		func(x *box) *interval { return &x.bytes },
		func(x *box) *interval { return &x.ranks },
	} {
		if inner := *side(&c); side(&b).lo < inner.lo {
			part := b
			side(&part).hi = inner.lo - 1
			boxes = append(boxes, part)
			side(&b).lo = inner.lo
		}
		if inner := *side(&c); side(&b).hi > inner.hi {
			part := b
			side(&part).lo = inner.hi + 1
			boxes = append(boxes, part)
			side(&b).hi = inner.hi
		}
	}
	return boxes
}

// within reports whether all of b is in c.
func (b box) within(c box) bool { return len(b.minus(c, nil)) == 0 }

// and returns the calls of both b and c, and whether there are any.
func (b box) and(c box) (box, bool) {
	if !b.meets(c) {
		return box{}, false
	}
	return box{
		b.collectives & c.collectives, b.dtypes & c.dtypes, b.ops & c.ops,
		interval{max(b.bytes.lo, c.bytes.lo), min(b.bytes.hi, c.bytes.hi)},
		interval{max(b.ranks.lo, c.ranks.lo), min(b.ranks.hi, c.ranks.hi)},
	}, true
}

// plus returns b and c as one box, if that is what they make up.
func (b box) plus(c box) (box, bool) {
	sum := box{
		b.collectives | c.collectives, b.dtypes | c.dtypes, b.ops | c.ops,
		interval{min(b.bytes.lo, c.bytes.lo), max(b.bytes.hi, c.bytes.hi)},
		interval{min(b.ranks.lo, c.ranks.lo), max(b.ranks.hi, c.ranks.hi)},
	}
	rest := sum.minus(b, nil)
	return sum, len(rest) == 0 || len(rest) == 1 && rest[0].within(c)
}

// String describes the calls, without the dimensions in which all are meant:
// "all_reduce of float32 of 1MiB- bytes on 3-8 ranks".
func (b box) String() string {
	text := namesOf(b.collectives, ccl.Collectives())
	if b.dtypes != allCalls.dtypes {
		text += " of " + namesOf(b.dtypes, ccl.DTypes())
	}
	if b.ops != allCalls.ops {
		text += " by " + namesOf(b.ops, ccl.Ops())
	}
	if b.bytes != allCalls.bytes {
		s := span[ccl.ByteSize]{min: ccl.ByteSize(b.bytes.lo), max: ccl.ByteSize(b.bytes.hi), open: b.bytes.hi == allCalls.bytes.hi}
		text += fmt.Sprintf(" of %v bytes", s)
	}
	if b.ranks != allCalls.ranks {
		s := span[int]{min: b.ranks.lo, max: b.ranks.hi, open: b.ranks.hi == allCalls.ranks.hi}
		text += fmt.Sprintf(" on %v ranks", s)
		if b.ranks == (interval{1, 1}) {
			text = strings.TrimSuffix(text, "s")
		}
	}
	return text
}

// namesOf lists the values whose bits are set: "sum, min or max".
func namesOf[T interface {
	~uint8 | ~uint64
	fmt.Stringer
}](bits uint64, values []T) string {
	var names []string
	for _, v := range values {
		if bits&(1<<v) != 0 {
			names = append(names, v.String())
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
