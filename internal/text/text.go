package text

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// IsName reports whether s consists of letters a to z, digits and underscores.
func IsName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Quote returns user input in quotes, cut if it is long.
func Quote(s string) string { return strconv.Quote(Cut(s)) }

// Cut returns at most the first 60 characters of s, and "..." if more follow.
func Cut(s string) string {
	const longest = 60
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "..."
	}
	return s
}

// Printable returns s with a space for each character that cannot be printed.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// Host returns the name of a host as a message has it, "?" if it has none.
func Host(name string) string { return cmp.Or(Printable(name), "?") }

// List joins names with commas. Of many it names the first and counts the others; it returns
// "none" for an empty list.
func List(names []string) string {
	const most = 40
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// DidYouMean returns " (did you mean NAME?)" for the Nearest name, "" if none is near.
func DidYouMean(unknown string, names []string) string {
	if name := Nearest(unknown, names); name != "" {
		return " (did you mean " + name + "?)"
	}
	return ""
}

// Nearest returns the name with the smallest edit distance to the lower-case form of unknown.
// If even that name needs more than 1 + len(unknown)/3 edits, it returns the first name that
// contains unknown, provided that unknown has at least two letters; else "".
func Nearest(unknown string, names []string) string {
	unknown = strings.ToLower(unknown)
	nearest, least := "", 2+len(unknown)/3
	for _, name := range names {
		if max(len(name), len(unknown))-min(len(name), len(unknown)) >= least {
			continue // needs at least that many edits: skip the quadratic part for long input
		}
		if d := EditDistance(unknown, name); d < least {
			nearest, least = name, d
		}
	}
	if i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, unknown) }); nearest == "" && len(unknown) > 1 && i >= 0 {
		return names[i]
	}
	return nearest
}

// EditDistance returns the Levenshtein distance of a and b in bytes: the usual dynamic
// program, one row at a time.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: distance of the prefix of a read so far to b[:j]
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}

	return row[len(b)]
}

// Whole parses a whole number in its only accepted spelling: decimal digits without a
// leading zero, after a minus sign if it is negative. The error is strconv.ErrSyntax or
// strconv.ErrRange; with ErrRange, n is the nearest int64.
func Whole(s string) (n int64, err error) {
	n, err = strconv.ParseInt(s, 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return n, strconv.ErrRange
	}
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, strconv.ErrSyntax
	}
	return n, nil
}

// Synonyms lead from words that people write, in lower case, to the names that they mean.
// They are for suggestions: no reader accepts them.
type Synonyms map[string]string

// Meant returns the name that word stands for, else word.
func (s Synonyms) Meant(word string) string {
	if name, ok := s[strings.ToLower(word)]; ok {
		return name
	}
	return word
}

// Named returns the value whose fmt.Sprint is name. Its error calls the values what, such as
// "transport".
func Named[T any](what, name string, values []T, synonyms Synonyms) (v T, err error) {
	names := make([]string, len(values))
	for i := range values {
		names[i] = fmt.Sprint(values[i])
		if names[i] == name {
			return values[i], nil
		}
	}
	return v, fmt.Errorf("unknown %s %s%s; use one of %s", what, Quote(name), DidYouMean(synonyms.Meant(name), names), List(names))
}
