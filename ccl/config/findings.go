package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// Finding is a property of the rules that their author may not have intended.
type Finding struct {
	Origin  string `json:"origin"` // "ccl.yaml:31"
	Message string `json:"message"`
}

// Findings analyses the rules for any number of ranks and nodes. It reports rules with different
// algorithms that overlap, unless one is a special case of the other, rules without a
// condition that never match, rules that choose a kernel with two levels for groups without them,
// and calls that no rule matches, which fail with ccl.ErrNotImplemented. None of these is an error.
// Without auto it returns nil, because rules are not used.
func (s *Settings) Findings() []Finding {
	c := s.config
	if s.algorithm.value != auto {
		return nil
	}
	var findings []Finding
	add := func(o origin, format string, args ...any) {
		findings = append(findings, Finding{c.place(o), fmt.Sprintf(format, args...)})
	}
	boxes := s.ruleBoxes()
	open := []box{allCalls}
	for i, b := range boxes {
		r := &c.rules[i]
		if !meet(b, open) {
			add(r.origin, "rule %d never matches: %s all that it does", i+1, s.shadows(boxes, i))
		}
		if a := s.candidate(r.algorithm.value).algorithm; meet(common(b, []box{unsupported(a)}), open) {
			add(r.origin, "rule %d: %s needs two levels; give it nodes: 2-", i+1, a.Name)
		}
		open = without(open, b...)
		for j, earlier := range boxes[:i] {
			if c.rules[j].algorithm.value == r.algorithm.value || covered(earlier, b) || covered(b, earlier) {
				continue
			}
			if both := common(b, earlier); len(both) > 0 {
				others := ""
				if len(both) > 1 {
					others = ", and others"
				}
				add(r.origin, "rules %d and %d overlap: both match %v%s; rule %d goes first", j+1, i+1, both[0], others, j+1)
			}
		}
	}
	at := c.rules[len(c.rules)-1].origin
	const most = 10
	if len(open) <= 10*most { // merging many more takes long
		open = merged(open)
	}
	for _, gap := range open[:min(most, len(open))] {
		add(at, "no rule matches %v: such calls fail; end the rules with one that has an algorithm only", gap)
	}
	if more := len(open) - most; more > 0 {
		add(at, "no rule matches %d further kinds of calls", more)
	}
	return findings
}

// checkRules rejects rules that can never match: their algorithm has no kernel for their
// collective, or earlier rules match everything that they match. A rule without a condition
// is a fallback, and only a finding if it never matches.
func (s *Settings) checkRules(Request) error {
	if s.algorithm.value != auto {
		return nil
	}
	boxes := s.ruleBoxes()
	open := []box{allCalls}
	var errs []error
	for i, b := range boxes {
		r := &s.config.rules[i]
		a := s.candidate(r.algorithm.value).algorithm
		kernelless := slices.DeleteFunc(slices.Clone(r.collective.value), func(c ccl.Collective) bool { return a.Kernels[c] != nil })
		switch {
		case len(kernelless) > 0:
			errs = append(errs, s.config.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"),
				"algorithm %s (entry %s) has no kernel for %v", a.Name, r.algorithm.value, written(kernelless)))
		case b[0][collectives].empty():
			errs = append(errs, s.config.errorAt(r.op.origin, ruleKey(i, "op"),
				"the rule never matches: algorithm %s (entry %s) has no kernel that takes an op", a.Name, r.algorithm.value))
		case !meet(b, []box{allCalls}):
			errs = append(errs, s.config.errorAt(r.nodes.origin, ruleKey(i, "nodes"),
				"the rule never matches: a group with two levels has more ranks than nodes; nodes is 1 for any other group"))
		case r.isSpecial() && !meet(b, open):
			errs = append(errs, s.config.errorAt(r.origin, fmt.Sprintf("rules[%d]", i+1),
				"the rule never matches: %s all that it does; put it before, or remove it", s.shadows(boxes, i)))
		}
		open = without(open, b...)
	}
	return errors.Join(errs...)
}

// isSpecial reports whether the rule has a condition.
func (r *rule) isSpecial() bool {
	return r.collective.isSet() || r.bytes.isSet() || r.ranks.isSet() || r.nodes.isSet() || r.dtype.isSet() || r.op.isSet()
}

// ruleBoxes returns the calls that each rule matches, regardless of earlier rules.
func (s *Settings) ruleBoxes() [][]box {
	boxes := make([][]box, len(s.config.rules))
	for i := range boxes {
		r := &s.config.rules[i]
		boxes[i] = r.boxes(s.candidate(r.algorithm.value).algorithm)
	}
	return boxes
}

// shadows names the rules before boxes[i] that overlap it: "rules 1 and 2 (ccl.yaml:30,
// ccl.yaml:31) together match".
func (s *Settings) shadows(boxes [][]box, i int) string {
	var numbers, places []string
	for j, earlier := range boxes[:i] {
		if meet(boxes[i], earlier) {
			numbers = append(numbers, fmt.Sprint(j+1))
			places = append(places, s.config.place(s.config.rules[j].origin))
		}
	}
	if len(numbers) == 1 {
		return fmt.Sprintf("rule %s (%s) matches", numbers[0], places[0])
	}
	last := len(numbers) - 1
	return fmt.Sprintf("rules %s and %s (%s) together match",
		strings.Join(numbers[:last], ", "), numbers[last], strings.Join(places, ", "))
}

// meet reports whether a call is in one of boxes and in one of others.
func meet(boxes, others []box) bool {
	return slices.ContainsFunc(boxes, func(b box) bool { return slices.ContainsFunc(others, b.meets) })
}

// common returns the calls that are in one of boxes and in one of others.
func common(boxes, others []box) (both []box) {
	for _, b := range boxes {
		for _, c := range others {
			if b.meets(c) {
				both = append(both, b.and(c))
			}
		}
	}
	return both
}

// without returns boxes without the calls in others.
func without(boxes []box, others ...box) []box {
	for _, b := range others {
		var left []box
		for _, c := range boxes {
			left = c.minus(b, left)
		}
		boxes = left
	}
	return boxes
}

// covered reports whether all calls in boxes are in others.
func covered(boxes, others []box) bool { return len(without(boxes, others...)) == 0 }

// unsupported returns the calls on one node of kernels that need two levels.
func unsupported(a *ccl.Algorithm) box {
	b := allCalls
	b[collectives] = setOf(slices.DeleteFunc(ccl.Collectives(), func(c ccl.Collective) bool { return a.Kernels[c] == nil || !a.Kernels[c].TwoLevels })...)
	b[nodes] = set{1, 1, 1}
	return b
}

// merged joins boxes whose union is a box.
func merged(boxes []box) []box {
	for again := true; again; {
		again = false
		for i := 0; i < len(boxes); i++ {
			for j := len(boxes) - 1; j > i; j-- {
				if sum, ok := boxes[i].plus(boxes[j]); ok {
					boxes[i] = sum
					boxes = slices.Delete(boxes, j, j+1)
					again = true
				}
			}
		}
	}
	return boxes
}
