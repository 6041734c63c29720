package config

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// Explanation says which kernel executes calls of one shape, at what cost, and why.
type Explanation struct {
	Choice ccl.Choice // zero if Err is not nil
	Err    error      // the error of Choose
	Shape  ccl.Shape  // the shape asked for, with Params and Eager as the kernel sees them
	Cost   ccl.Cost   // declared by the kernel for the call that it sees, see ccl.Choice.Shape
	Rules  []Verdict  // one per rule, in the order of the file
}

// Verdict says whether one rule was chosen for one shape, and why.
type Verdict struct {
	Rule   int    `json:"rule"`   // its number, from 1
	Origin string `json:"origin"` // "ccl.yaml:31"
	Entry  string `json:"entry"`  // the rule's algorithm
	Chosen bool   `json:"chosen"`
	Why    string `json:"why"` // "bytes: 1MiB-, and the call has 4KiB"
}

// Explain returns the result of Choose for the same arguments, and a Verdict on each rule.
//
// payloadLimit is the PayloadLimit of the group's transport.Endpoint: the length in bytes up to
// which inputs travel with the synchronisation. It is 0 if unknown.
func (s *Settings) Explain(shape ccl.Shape, force string, payloadLimit int) Explanation {
	choice, err := s.Choose(shape, force)
	e := Explanation{Choice: choice, Err: err, Shape: shape}
	if err == nil {
		seen := choice.Shape(shape, payloadLimit)
		e.Shape.Params, e.Shape.Eager = seen.Params, seen.Eager
		e.Cost = choice.Kernel.Cost(seen)
	}

	first := 0 // number of the first rule that matches
	for i := range s.config.rules {
		r := &s.config.rules[i]
		v := Verdict{Rule: i + 1, Origin: s.config.locate(r.origin), Entry: r.algorithm.value}
		a := s.candidate(v.Entry).algorithm

		switch {
		case !r.matches(shape, a):
			v.Why = r.mismatch(shape, a)
		// The rule matches. Does a setting come before the rules?
		case force != "":
			v.Why = "matches, but the call names its algorithm"
		case s.algorithm.value != auto:
			v.Why = fmt.Sprintf("matches, but defaults.algorithm is %s (%s)", s.algorithm.value, s.config.locate(s.algorithm.origin))
		// Or an earlier rule?
		case first != 0:
			v.Why = fmt.Sprintf("matches too, but rule %d goes first", first)
		default:
			v.Why = "the first rule that matches"
			v.Chosen = true
			first = v.Rule
		}

		e.Rules = append(e.Rules, v)
	}
	return e
}

// mismatch returns why the rule, which chooses the algorithm a, does not match, "" if it does.
func (r *rule) mismatch(shape ccl.Shape, a *ccl.Algorithm) string {
	coll := shape.Collective
	switch {
	// The kind of call.
	case r.collective.isSet() && !slices.Contains(r.collective.value, coll):
		return fmt.Sprintf("collective: %v, and the call is %v", written(r.collective.value), coll)
	case r.op.isSet() && !coll.Traits().Reduces:
		return fmt.Sprintf("op: %v, and %v takes none", written(r.op.value), coll)
	case !r.takes(coll, a):
		return fmt.Sprintf("algorithm %s has no kernel for %v", a.Name, coll)
	// The sizes.
	case r.bytes.isSet() && !within(ccl.ByteSize(shape.Bytes), r.bytes.value):
		return fmt.Sprintf("bytes: %v, and the call has %v", written(r.bytes.value), ccl.ByteSize(shape.Bytes))
	case r.ranks.isSet() && !within(shape.Ranks, r.ranks.value):
		return fmt.Sprintf("ranks: %v, and the group has %d", written(r.ranks.value), shape.Ranks)
	case r.nodes.isSet() && !within(nodesOf(shape), r.nodes.value):
		return fmt.Sprintf("nodes: %v, and the group is on %d", written(r.nodes.value), nodesOf(shape))
	// The elements, and what is done with them.
	case r.dtype.isSet() && !slices.Contains(r.dtype.value, shape.DType):
		return fmt.Sprintf("dtype: %v, and the call has %v", written(r.dtype.value), shape.DType)
	case r.op.isSet() && !slices.Contains(r.op.value, shape.Op):
		return fmt.Sprintf("op: %v, and the call has %v", written(r.op.value), shape.Op)
	}
	return ""
}
