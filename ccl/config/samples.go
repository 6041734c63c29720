package config

import (
	"math/bits"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// maxLooks bounds the calls that are looked at, times the rules. Rules with more thresholds are not
// analysed.
const maxLooks = 1 << 22

// samples returns one call of each kind that the rules can tell apart: rules treat all calls
// between two thresholds alike, and all values that none of them names. It returns nil if there are
// too many: see maxLooks.
func (s *Settings) samples() (all []ccl.Shape) {
	rules := s.config.rules
	dtypes := namedAndOneOther(rules, ccl.DTypes(), ccl.Float32, func(r rule) []ccl.DType { return r.dtype.value })
	ops := namedAndOneOther(rules, ccl.Ops(), ccl.Sum, func(r rule) []ccl.Op { return r.op.value })
	bytes := thresholds(rules, 0, maxBytes, func(r rule) []span[ccl.ByteSize] { return r.bytes.value })
	ranks := thresholds(rules, 1, MaxRanks, func(r rule) []span[int] { return r.ranks.value })
	nodes := thresholds(rules, 1, maxNodes, func(r rule) []span[int] { return r.nodes.value })

	// A group with two levels has more ranks than nodes.
	for _, n := range nodes {
		ranks = append(ranks, n+1)
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)

	if len(rules)*len(ccl.Collectives())*len(dtypes)*len(ops)*len(ranks) > maxLooks/len(nodes)/len(bytes) {
		return nil
	}

	for _, coll := range ccl.Collectives() {
		opsOf := ops
		if !coll.Traits().Reduces {
			opsOf = ops[:1]
		}

		for _, dtype := range dtypes {
			for _, op := range opsOf {
				for _, n := range nodes {
					for _, size := range ranks {
						if n > 1 && size <= n {
							continue
						}

						for _, b := range bytes {
							all = append(all, ccl.Shape{Collective: coll, DType: dtype, Op: op, Bytes: int(b), Ranks: size, Nodes: n})
						}
					}
				}
			}
		}
	}
	return all
}

// maxBytes is the longest call that is looked at.
const maxBytes = ccl.ByteSize(1 << 62)

// thresholds returns the least value, and all at which a range of a rule begins, or others begin
// after its end.
func thresholds[T int | ccl.ByteSize](rules []rule, least, most T, spansOf func(rule) []span[T]) []T {
	all := []T{least}
	for _, r := range rules {
		for _, s := range spansOf(r) {
			all = append(all, s.min)
			if !s.open && s.max < most {
				all = append(all, s.max+1)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// namedAndOneOther returns the values that rules name, and one of the others: the usual one, if no
// rule names it.
func namedAndOneOther[T comparable](rules []rule, values []T, usual T, named func(rule) []T) (chosen []T) {
	isNamed := func(v T) bool {
		return slices.ContainsFunc(rules, func(r rule) bool { return slices.Contains(named(r), v) })
	}
	other := slices.IndexFunc(values, func(v T) bool { return !isNamed(v) })
	if !isNamed(usual) {
		other = slices.Index(values, usual)
	}

	for i, v := range values {
		if i == other || isNamed(v) {
			chosen = append(chosen, v)
		}
	}
	return chosen
}

// sampleSet is a set of samples, as bits.
type sampleSet []uint64

func newSampleSet(n int) sampleSet { return make(sampleSet, (n+63)/64) }

func (s sampleSet) add(i int) { s[i/64] |= 1 << (i % 64) }

// firstCommon returns the first sample that is in both sets, -1 if there is none.
func (s sampleSet) firstCommon(t sampleSet) int {
	for i, word := range s {
		if both := word & t[i]; both != 0 {
			return i*64 + bits.TrailingZeros64(both)
		}
	}
	return -1
}

// isWithin reports whether t has all samples of s.
func (s sampleSet) isWithin(t sampleSet) bool {
	for i, word := range s {
		if word&^t[i] != 0 {
			return false
		}
	}
	return true
}

// remove removes the samples of t from s.
func (s sampleSet) remove(t sampleSet) {
	for i := range s {
		s[i] &^= t[i]
	}
}

// allSamples returns the set of n samples.
func allSamples(n int) sampleSet {
	all := newSampleSet(n)
	for i := range n {
		all.add(i)
	}
	return all
}
