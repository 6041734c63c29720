package measure

// scalar is the set of types that there is arithmetic for.
type scalar interface {
	~uint8 | ~int32 | ~int64 | ~float32 | ~float64
}
