package main

import (
	"fmt"
	"strconv"
	"strings"
)

var sizeUnits = []struct {
	name  string
	bytes int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// parseSize parses the length of a vector of float32: "4", "64KiB".
func parseSize(text string) (int, error) {
	number, unit := text, 1
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = n, u.bytes
			break
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > (1<<30)/unit || n*unit%4 != 0 {
		return 0, fmt.Errorf("%q is no multiple of 4 bytes up to 1GiB, such as 4, 64KiB or 16MiB", text)
	}
	return n * unit, nil
}

// formatSize is the inverse of parseSize.
func formatSize(bytes int) string {
	for _, u := range sizeUnits {
		if bytes >= u.bytes && bytes%u.bytes == 0 {
			return fmt.Sprintf("%d %s", bytes/u.bytes, u.name)
		}
	}
	return "barrier"
}
