package transport

import "github.com/goccl/goccl/internal/text"

// RanksText returns the text of ranks, in ascending order, for a message: "rank 3",
// "ranks 0, 2", "ranks 0-7".
func RanksText(ranks []int) string { return text.Ranks(ranks) }
