package ccltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// manyRanks is the size of a group that kernels are tried in once: more than the bits of a word of
// 32, and no power of two.
const manyRanks = 33

// many makes some calls on more ranks than the checks before it.
func many(s *subject, w medium, n int) error {
	return s.with(w, n, probe{}, func(g *group) error { return g.run(g.pick(60, g.jobs()), attempt.Right) })
}

// mostDeclared is the largest declared parameter for which the suite makes longer inputs.
const mostDeclared = 4 << 20

func (s *subject) reach() int {
	if s.short {
		return poll.brief()
	}
	return mostDeclared
}

// unreached says what the checks of a kernel have not tried.
func (s *subject) unreached() string {
	var parts []string
	settings, err := s.settings(2, nil)
	if err != nil {
		return ""
	}

	for _, p := range s.declared(2, settings) {
		if p.bytes <= s.reach() {
			continue
		}

		text := fmt.Sprintf("inputs longer than %s, which is %v: ", p.name, ccl.ByteSize(p.bytes))
		if s.short && p.bytes <= mostDeclared {
			text += "without -short and -race, or "
		}
		parts = append(parts, text+fmt.Sprintf("with ccltest.Params(%q)", p.name+": 64"))
	}

	sizes := append(checkNamed("Result").sizes(s), checkNamed("Many").sizes(s)...)
	slices.SortFunc(sizes, func(a, b size) int { return b.ranks - a.ranks })
	for _, z := range sizes {
		if s.supportsAt(z) == nil {
			parts = append(parts, fmt.Sprintf("more than %d ranks: with ccltest.Ranks", z.ranks))
			break
		}
	}
	return "not reached: " + strings.Join(parts, "; ")
}
