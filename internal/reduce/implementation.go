package reduce

//go:generate go -C _gen run . ..

// An implementation is a set of loops. All give the same bits, except in a NaN.
type implementation uint8

const (
	plain implementation = iota // the loops in Go
	avx2                        // these are in assembly, with Go loops for the rest
	avx512
)

// best is what this machine folds with.
var best = supported[len(supported)-1]

// Implementation says what this program folds with on this machine: "AVX-512", "AVX2",
// each in assembly, or "Go".
func Implementation() string {
	return [...]string{plain: "Go", avx2: "AVX2", avx512: "AVX-512"}[best]
}
