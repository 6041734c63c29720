package config

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is a property of the rules that their author may not have intended.
type Finding struct {
	Origin  string `json:"origin"` // "ccl.yaml:31"
	Message string `json:"message"`
}

// Findings analyses the rules for any number of ranks. It reports rules with different
// algorithms that overlap, unless one is a special case of the other, rules without a
// condition that never match, and calls that no rule matches, which fail with
// ccl.ErrNotImplemented. None of these is an error. Without auto it returns nil, because rules
// are not used.
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
			if both := b.and(earlier); !both.empty() {
				add(r.origin, "rules %d and %d overlap: both match %v; rule %d goes first", j+1, i+1, both, j+1)
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
	for i, b := range boxes {
		r := &s.config.rules[i]
		a := s.candidate(r.algorithm.value).algorithm
		switch {
		case r.collective.isSet() && a.Kernels[r.collective.value] == nil:
			return s.config.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"),
				"algorithm %s (entry %s) has no kernel for %v", a.Name, r.algorithm.value, r.collective.value)
		case b[collectives].empty():
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

// ruleBoxes returns the calls that each rule matches, regardless of earlier rules.
func (s *Settings) ruleBoxes() []box {
	boxes := make([]box, len(s.config.rules))
	for i := range boxes {
		r := &s.config.rules[i]
		boxes[i] = r.box(s.candidate(r.algorithm.value).algorithm)
	}
	return boxes
}

// shadows names the rules before boxes[i] that overlap it: "rules 1 and 2 (ccl.yaml:30,
// ccl.yaml:31) together match".
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

// without returns boxes without the calls in b.
func without(boxes []box, b box) (left []box) {
	for _, c := range boxes {
		left = c.minus(b, left)
	}
	return left
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
