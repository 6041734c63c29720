package config

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// Finding is a property of the rules that their author may not have intended.
type Finding struct {
	Origin  string `json:"origin"` // "ccl.yaml:31"
	Message string `json:"message"`
}

// Findings analyses the rules for any number of ranks and nodes. None of what it reports is an
// error:
//
//   - rules with different algorithms that overlap, unless one is a special case of the other
//   - rules without a condition that never match
//   - rules that choose a kernel with two levels for groups without them
//   - calls that no rule matches, which fail with ccl.ErrNotImplemented
//
// Without auto it returns nil, because rules are not used.
func (s *Settings) Findings() []Finding {
	c := s.config
	if s.algorithm.value != auto {
		return nil
	}
	var findings []Finding
	add := func(o origin, format string, args ...any) {
		findings = append(findings, Finding{c.locate(o), fmt.Sprintf(format, args...)})
	}

	samples := s.samples()
	if samples == nil {
		add(c.rules[0].origin, "the rules have too many thresholds: whether they overlap, or leave calls out, is not known")
		return findings
	}

	matches := s.matchSets(samples)
	open := allSamples(len(samples))
	for i, matched := range matches {
		r := &c.rules[i]
		if matched.firstCommon(open) < 0 {
			add(r.origin, "rule %d never matches: %s all that it does", i+1, s.shadows(matches, i))
		}
		a := s.candidate(r.algorithm.value).algorithm
		if s.hasUnsupported(samples, matched, open, a) {
			add(r.origin, "rule %d: %s needs two levels; give it nodes: 2-", i+1, a.Name)
		}
		open.remove(matched)

		for j, earlier := range matches[:i] {
			both := matched.firstCommon(earlier)
			isSpecialCase := c.rules[j].algorithm.value == r.algorithm.value || earlier.isWithin(matched) || matched.isWithin(earlier)
			if both >= 0 && !isSpecialCase {
				add(r.origin, "rules %d and %d overlap: both match %v, for example; rule %[1]d goes first", j+1, i+1, samples[both])
			}
		}
	}

	if gap := open.firstCommon(open); gap >= 0 {
		add(c.rules[len(c.rules)-1].origin, "no rule matches %v, for example: such calls fail; end the rules with one that has an algorithm only", samples[gap])
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

	samples := s.samples()
	matches := s.matchSets(samples)
	open := allSamples(len(samples))

	var errs []error
	for i, matched := range matches {
		r := &s.config.rules[i]
		a := s.candidate(r.algorithm.value).algorithm
		kernelless := slices.DeleteFunc(slices.Clone(r.collective.value), func(c ccl.Collective) bool { return a.Kernels[c] != nil })
		switch {
		case len(kernelless) > 0:
			errs = append(errs, s.config.errorAt(r.algorithm.origin, ruleKey(i, "algorithm"),
				"algorithm %s (entry %s) has no kernel for %v", a.Name, r.algorithm.value, written(kernelless)))
		case !slices.ContainsFunc(ccl.Collectives(), func(c ccl.Collective) bool { return r.takes(c, a) }):
			errs = append(errs, s.config.errorAt(r.op.origin, ruleKey(i, "op"),
				"the rule never matches: algorithm %s (entry %s) has no kernel that takes an op", a.Name, r.algorithm.value))
		case samples == nil: // too many to look at
		case matched.firstCommon(matched) < 0:
			errs = append(errs, s.config.errorAt(r.nodes.origin, ruleKey(i, "nodes"),
				"the rule never matches: a group with two levels has more ranks than nodes; nodes is 1 for any other group"))
		case r.isSpecial() && matched.firstCommon(open) < 0:
			errs = append(errs, s.config.errorAt(r.origin, fmt.Sprintf("rules[%d]", i+1),
				"the rule never matches: %s all that it does; put it before, or remove it", s.shadows(matches, i)))
		}
		open.remove(matched)
	}
	return errors.Join(errs...)
}

// isSpecial reports whether the rule has a condition.
func (r *rule) isSpecial() bool {
	return r.collective.isSet() || r.bytes.isSet() || r.ranks.isSet() || r.nodes.isSet() || r.dtype.isSet() || r.op.isSet()
}

// matchSets returns the samples that each rule matches, regardless of earlier rules.
func (s *Settings) matchSets(samples []ccl.Shape) []sampleSet {
	sets := make([]sampleSet, len(s.config.rules))
	for i := range sets {
		sets[i] = newSampleSet(len(samples))
		r := &s.config.rules[i]
		a := s.candidate(r.algorithm.value).algorithm
		for j, shape := range samples {
			if r.matches(shape, a) {
				sets[i].add(j)
			}
		}
	}
	return sets
}

// shadows names the rules before rule i that overlap it: "rules 1 and 2 (ccl.yaml:30,
// ccl.yaml:31) together match".
func (s *Settings) shadows(matches []sampleSet, i int) string {
	var numbers, positions []string
	for j, earlier := range matches[:i] {
		if matches[i].firstCommon(earlier) >= 0 {
			numbers = append(numbers, fmt.Sprint(j+1))
			positions = append(positions, s.config.locate(s.config.rules[j].origin))
		}
	}

	if len(numbers) == 1 {
		return fmt.Sprintf("rule %s (%s) matches", numbers[0], positions[0])
	}
	last := len(numbers) - 1
	return fmt.Sprintf("rules %s and %s (%s) together match",
		strings.Join(numbers[:last], ", "), numbers[last], strings.Join(positions, ", "))
}

// hasUnsupported reports whether a call on one node, of those that are matched and open, gets a
// kernel of the algorithm that needs two levels.
func (s *Settings) hasUnsupported(samples []ccl.Shape, matched, open sampleSet, a *ccl.Algorithm) bool {
	for i := range matched {
		for word := matched[i] & open[i]; word != 0; word &= word - 1 {
			shape := samples[i*64+bits.TrailingZeros64(word)]
			if k := a.Kernels[shape.Collective]; shape.Nodes == 1 && k != nil && k.TwoLevels {
				return true
			}
		}
	}
	return false
}
