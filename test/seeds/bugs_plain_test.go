//go:build !interleave

package seeds

func nameRank(int) {}
