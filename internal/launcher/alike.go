package launcher

import (
	"strings"
	"unicode"

	"github.com/goccl/goccl/internal/text"
)

// letters returns the letters of a text. Those of an error are the same when it is quoted, and on
// ranks that differ in numbers only.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, text)
}

// describeBuilds says which ranks run another build of the program than rank 0; "" if none does.
func describeBuilds(ranks []Rank) string {
	var others []int
	for i, r := range ranks {
		if r.build != "" && ranks[0].build != "" && r.build != ranks[0].build {
			others = append(others, i)
		}
	}

	switch len(others) {
	case 0:
		return ""
	case 1:
		return text.Ranks(others) + " runs another build of the program than rank 0"
	}
	return text.Ranks(others) + " run another build of the program than rank 0"
}

// describeRests says which ranks had more processes than the one that ended; "" if none had.
func describeRests(ranks []Rank) string {
	var of []int
	for i, r := range ranks {
		if r.hasRest {
			of = append(of, i)
		}
	}
	if len(of) == 0 {
		return ""
	}
	return text.Ranks(of) + ": " + ranks[of[0]].How()
}
