package ccl

import (
	"strconv"
	"strings"
)

// isName reports whether s can be the name of an entry: letters a to z, digits
// and underscores.
func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// quote writes what stands in a file for a message: in quotes, and cut if long.
func quote(s string) string { return strconv.Quote(cut(s)) }

// cut shortens what is too long for a message.
func cut(s string) string {
	const longest = 60
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "..."
	}
	return s
}

// didYouMean returns " (did you mean X?)" for the name that is nearest to a wrong
// one, or nothing if none is near: one edit may be needed, and one more for every
// three letters.
func didYouMean(wrong string, names []string) string {
	if name := nearestName(wrong, names); name != "" {
		return " (did you mean " + name + "?)"
	}
	return ""
}

// nearestName is that name, or "" if none is near.
func nearestName(wrong string, names []string) string {
	wrong = strings.ToLower(wrong)
	nearest, least := "", 2+len(wrong)/3
	for _, name := range names {
		if max(len(name), len(wrong))-min(len(name), len(wrong)) >= least {
			continue // so many edits at least: a long text costs nothing
		}
		if d := editDistance(wrong, name); d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// editDistance returns how many bytes have to be inserted, deleted or replaced
// to make b of a (Levenshtein), by the usual dynamic programme in one row.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: distance of the part of a so far to b[:j]
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
