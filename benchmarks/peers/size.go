package main

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
)

var sizeUnits = []struct {
	name  string
	bytes int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// parseSize parses the length of a vector of float32: "4", "64KiB".
func parseSize(text string) (int, error) {
	var size ccl.ByteSize
	if err := size.UnmarshalText([]byte(text)); err != nil {
		return 0, err
	}
	if size > 1<<30 || size%4 != 0 {
		return 0, fmt.Errorf("%q is no multiple of 4 bytes up to 1GiB, such as 4, 64KiB or 16MiB", text)
	}
	return int(size), nil
}

// formatSize writes a size in the largest unit that divides it.
func formatSize(bytes int) string {
	for _, u := range sizeUnits {
		if bytes >= u.bytes && bytes%u.bytes == 0 {
			return fmt.Sprintf("%d %s", bytes/u.bytes, u.name)
		}
	}
	return "barrier"
}
