package config

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is something about the rules of a configuration that its author may not
// have meant.
type Finding struct {
	Origin  string // "ccl.yaml:31"
	Message string
}

// Findings looks at the rules as a whole, for any number of ranks: which of them
// overlap without one being the special case of the other, which never match, and
// for which calls there is none, so that they fail with ErrNotImplemented. None
// of this is an error: what is, Resolve has refused. There are no findings where
// one algorithm does everything and no rule is asked.
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
		if !meetsAny(b, open) {
			add(r.origin, "rule %d never matches: %s all that it does", i+1, s.shadows(boxes, i))
		}
		open = without(open, b)
		for j, earlier := range boxes[:i] {
			if c.rules[j].algorithm.value == r.algorithm.value || earlier.within(b) || b.within(earlier) {
				continue
			}
			if both, some := b.and(earlier); some {
				add(r.origin, "rules %d and %d overlap: both match %v; rule %d goes first", j+1, i+1, both, j+1)
			}
		}
	}
	at := c.rules[len(c.rules)-1].origin
	const most = 10
	if len(open) <= 10*most { // else they are past reading anyway
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

// checkRules refuses rules that can do nothing: those that name a collective that
// their algorithm has no kernel for, and special cases that an earlier rule has
// taken already. A rule without any condition may be left with nothing to do; it
// is a fallback, and a finding.
func (s *Settings) checkRules(Request) error {
	if s.algorithm.value != auto {
		return nil
	}
	boxes := s.ruleBoxes()
	open := []box{allCalls}
	for i, b := range boxes {
		r := &s.config.rules[i]
		a := s.candidate(r.algorithm.value).algorithm
		switch {
		case r.collective.isSet() && a.Kernels[r.collective.value] == nil:
			return s.config.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"),
				"algorithm %s (entry %s) has no kernel for %v", a.Name, r.algorithm.value, r.collective.value)
		case b.collectives == 0:
			return s.config.errorAt(r.origin, ruleKey(i, "op"),
				"the rule never matches: algorithm %s (entry %s) has no kernel that takes an op", a.Name, r.algorithm.value)
		case r.isSpecial() && !meetsAny(b, open):
			return s.config.errorAt(r.origin, fmt.Sprintf("rules[%d]", i+1),
				"the rule never matches: %s all that it does; put it before, or remove it", s.shadows(boxes, i))
		}
		open = without(open, b)
	}
	return nil
}

// isSpecial reports whether the rule has a condition.
func (r *rule) isSpecial() bool {
	return r.collective.isSet() || r.bytes.isSet() || r.ranks.isSet() || r.dtype.isSet() || r.op.isSet()
}

// ruleBoxes returns the calls that each rule matches by itself.
func (s *Settings) ruleBoxes() []box {
	boxes := make([]box, len(s.config.rules))
	for i := range boxes {
		r := &s.config.rules[i]
		boxes[i] = r.box(s.candidate(r.algorithm.value).algorithm)
	}
	return boxes
}

// shadows names the rules before boxes[i] that match something of it:
// "rules 1 and 2 (ccl.yaml:30, ccl.yaml:31) match".
func (s *Settings) shadows(boxes []box, i int) string {
	var numbers, places []string
	for j, earlier := range boxes[:i] {
		if boxes[i].meets(earlier) {
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

func meetsAny(b box, boxes []box) bool { return slices.ContainsFunc(boxes, b.meets) }

// without returns the calls of boxes that are not in b.
func without(boxes []box, b box) (left []box) {
	for _, c := range boxes {
		left = c.minus(b, left)
	}
	return left
}

// merged puts together boxes that differ in one dimension only and make up one.
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
