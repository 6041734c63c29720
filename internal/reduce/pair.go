package reduce

// Loops over two operands: dst[i] = a[i] op b[i] for every i in dst. a and b are at
// least as long as dst, and each is dst itself or disjoint from it.
//
// Each loop does eight elements at a time, through pointers to arrays of eight, so
// that the compiler can omit all bounds checks: plain loops take up to four times as
// long. Each operation has a loop of its own, because a call or a branch per element
// would cost more than the arithmetic.

func sum[T number](dst, a, b []T) {
	a, b = a[:len(dst):len(dst)], b[:len(dst):len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		d, x, y := (*[8]T)(dst[i:i+8]), (*[8]T)(a[i:i+8]), (*[8]T)(b[i:i+8])
		d[0] = x[0] + y[0]
		d[1] = x[1] + y[1]
		d[2] = x[2] + y[2]
		d[3] = x[3] + y[3]
		d[4] = x[4] + y[4]
		d[5] = x[5] + y[5]
		d[6] = x[6] + y[6]
		d[7] = x[7] + y[7]
	}

	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = a[i] + b[i]
	}
}

// product converts each product to T. The language guarantees that the conversion
// rounds; without it a compiler may fuse the multiplication with a later addition.
func product[T number](dst, a, b []T) {
	a, b = a[:len(dst):len(dst)], b[:len(dst):len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		d, x, y := (*[8]T)(dst[i:i+8]), (*[8]T)(a[i:i+8]), (*[8]T)(b[i:i+8])
		d[0] = T(x[0] * y[0])
		d[1] = T(x[1] * y[1])
		d[2] = T(x[2] * y[2])
		d[3] = T(x[3] * y[3])
		d[4] = T(x[4] * y[4])
		d[5] = T(x[5] * y[5])
		d[6] = T(x[6] * y[6])
		d[7] = T(x[7] * y[7])
	}

	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = T(a[i] * b[i])
	}
}

// minimum uses the language's min: it propagates NaN, orders -0 below +0, and
// compiles to straight-line code. Comparisons would compile to branches, which are
// mispredicted on random data.
func minimum[T number](dst, a, b []T) {
	a, b = a[:len(dst):len(dst)], b[:len(dst):len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		d, x, y := (*[8]T)(dst[i:i+8]), (*[8]T)(a[i:i+8]), (*[8]T)(b[i:i+8])
		d[0] = min(x[0], y[0])
		d[1] = min(x[1], y[1])
		d[2] = min(x[2], y[2])
		d[3] = min(x[3], y[3])
		d[4] = min(x[4], y[4])
		d[5] = min(x[5], y[5])
		d[6] = min(x[6], y[6])
		d[7] = min(x[7], y[7])
	}

	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = min(a[i], b[i])
	}
}

// maximum is the mirror image of minimum.
func maximum[T number](dst, a, b []T) {
	a, b = a[:len(dst):len(dst)], b[:len(dst):len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		d, x, y := (*[8]T)(dst[i:i+8]), (*[8]T)(a[i:i+8]), (*[8]T)(b[i:i+8])
		d[0] = max(x[0], y[0])
		d[1] = max(x[1], y[1])
		d[2] = max(x[2], y[2])
		d[3] = max(x[3], y[3])
		d[4] = max(x[4], y[4])
		d[5] = max(x[5], y[5])
		d[6] = max(x[6], y[6])
		d[7] = max(x[7], y[7])
	}

	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = max(a[i], b[i])
	}
}

func and[T integer](dst, a, b []T) {
	a, b = a[:len(dst):len(dst)], b[:len(dst):len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		d, x, y := (*[8]T)(dst[i:i+8]), (*[8]T)(a[i:i+8]), (*[8]T)(b[i:i+8])
		d[0] = x[0] & y[0]
		d[1] = x[1] & y[1]
		d[2] = x[2] & y[2]
		d[3] = x[3] & y[3]
		d[4] = x[4] & y[4]
		d[5] = x[5] & y[5]
		d[6] = x[6] & y[6]
		d[7] = x[7] & y[7]
	}

	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = a[i] & b[i]
	}
}

func or[T integer](dst, a, b []T) {
	a, b = a[:len(dst):len(dst)], b[:len(dst):len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		d, x, y := (*[8]T)(dst[i:i+8]), (*[8]T)(a[i:i+8]), (*[8]T)(b[i:i+8])
		d[0] = x[0] | y[0]
		d[1] = x[1] | y[1]
		d[2] = x[2] | y[2]
		d[3] = x[3] | y[3]
		d[4] = x[4] | y[4]
		d[5] = x[5] | y[5]
		d[6] = x[6] | y[6]
		d[7] = x[7] | y[7]
	}

	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = a[i] | b[i]
	}
}

func xor[T integer](dst, a, b []T) {
	a, b = a[:len(dst):len(dst)], b[:len(dst):len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		d, x, y := (*[8]T)(dst[i:i+8]), (*[8]T)(a[i:i+8]), (*[8]T)(b[i:i+8])
		d[0] = x[0] ^ y[0]
		d[1] = x[1] ^ y[1]
		d[2] = x[2] ^ y[2]
		d[3] = x[3] ^ y[3]
		d[4] = x[4] ^ y[4]
		d[5] = x[5] ^ y[5]
		d[6] = x[6] ^ y[6]
		d[7] = x[7] ^ y[7]
	}

	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = a[i] ^ b[i]
	}
}

// productComplex multiplies complex numbers, each stored as its real part followed by its
// imaginary part: (a+bi)(c+di) = (ac-bd) + (ad+bc)i. It rounds after every operation; where
// Go's own complex product rounds is not specified. Infinities may become NaN, as in this
// formula.
func productComplex[T float](dst, a, b []T) {
	n := len(dst)
	a, b = a[:n:n], b[:n:n]
	for i := 0; i < n-1; i += 2 {
		d, x, y := (*[2]T)(dst[i:i+2]), (*[2]T)(a[i:i+2]), (*[2]T)(b[i:i+2])
		re := T(x[0]*y[0]) - T(x[1]*y[1])
		im := T(x[0]*y[1]) + T(x[1]*y[0])
		d[0], d[1] = re, im
	}
}
