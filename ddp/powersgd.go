package ddp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// PowerSGD returns the hook that reduces each gradient with two dimensions or more as a matrix of a
// low rank, the product of two thin ones, which is most useful between machines (powerSGD_hook of
// torch; Vogels, Karimireddy and Jaggi, 2019). A rank below 1 counts as 1.
//
// The matrix has as many rows as the first dimension. Gradients of which the thin matrices are not
// at most half as long, and those of one dimension, travel as they are. What a step leaves out of a
// gradient is added to that of the next step on this rank, so that all of it arrives in time. This
// error feedback needs the memory of the gradients once more. A gradient with infinities or NaN, or
// whose thin matrices have some, leaves it as it was, and all of it is NaN on all ranks then.
//
// The mean is equal bit by bit on all ranks, and exact but for rounding where its rank is not
// higher. A step has two calls for each bucket with such gradients. With gradients of the program's
// own, what the first step leaves out is dropped.
func PowerSGD(rank int) Hook[float32] { return powerSGD{max(rank, 1)} }

type powerSGD struct{ rank int }

// lowRank is the state of a bucket.
type lowRank struct {
	asyncCall
	matrices []thinMatrix
	plain    [][2]int // the other gradients: where they begin and end
	first    []float32
	second   []float32
	reduced  []float32 // second of all ranks
	errors   []float32 // left out by earlier steps
}

// thinMatrix is a gradient M that is approximated by the product of P and the transpose of Q. P has
// orthonormal columns.
type thinMatrix struct {
	at, rows, columns, rank int
	p, q                    []float32 // parts of first and second, row by row
}

// newLowRank returns the state of a bucket before its first step.
func (h powerSGD) newLowRank(b *Bucket[float32]) *lowRank {
	s := &lowRank{errors: make([]float32, len(b.Gradients))}
	at, firstCount, secondCount := 0, 0, 0
	for _, shape := range b.Shapes {
		count := 1
		for _, extent := range shape {
			count *= extent
		}

		m := thinMatrix{at: at, rows: 1, columns: count}
		if len(shape) > 1 && count > 0 {
			m.rows, m.columns = shape[0], count/shape[0]
		}
		m.rank = min(h.rank, m.rows, m.columns)

		if 2*m.rank*(m.rows+m.columns) <= count && count > 0 {
			s.matrices = append(s.matrices, m)
			firstCount += m.rank * m.rows
			secondCount += m.rank * m.columns
		} else {
			s.plain = append(s.plain, [2]int{at, at + count})
			firstCount += count
		}
		at += count
	}

	s.first, s.second = make([]float32, max(firstCount, 1)), make([]float32, secondCount)
	s.reduced = make([]float32, secondCount)
	h.fill(s, b.Index)
	return s
}

// fill makes the first Q random, the same on all ranks, and divides the memory of the state.
func (powerSGD) fill(s *lowRank, bucket int) {
	random := rand.New(rand.NewPCG(uint64(bucket), 0))
	for i := range s.second {
		s.second[i] = float32(random.NormFloat64())
	}
	p, q := s.first, s.second
	for i := range s.matrices {
		m := &s.matrices[i]
		m.p, p = p[:m.rank*m.rows], p[m.rank*m.rows:]
		m.q, q = q[:m.rank*m.columns], q[m.rank*m.columns:]
	}
}

// Start reduces the products of the matrices with the last Q, and the other gradients.
func (h powerSGD) Start(b *Bucket[float32]) *ccl.Work {
	s, ok := b.State.(*lowRank)
	if !ok {
		s = h.newLowRank(b)
		b.State = s
	}

	at := 0
	for _, m := range s.matrices {
		gradient := b.Gradients[m.at:][:m.rows*m.columns]
		for i, e := range s.errors[m.at:][:len(gradient)] {
			gradient[i] += e
		}
		orthonormalize(m.q, m.rank)
		m.multiply(gradient)
		at += len(m.p)
	}

	for _, span := range s.plain {
		at += copy(s.first[at:], b.Gradients[span[0]:span[1]])
	}
	return startAllReduce(b, &s.asyncCall, s.first, b.Op)
}

// Finish makes the columns of P orthonormal, and reduces the new Q. If P or the new Q of a rank has
// infinities or NaN, all ranks lose the gradient.
func (h powerSGD) Finish(b *Bucket[float32]) error {
	s := b.State.(*lowRank)
	at := 0
	for _, m := range s.matrices {
		isLost := slices.ContainsFunc(m.p, isNotFinite)
		orthonormalize(m.p, m.rank)
		m.multiplyTransposed(b.Gradients[m.at:][:m.rows*m.columns])
		if isLost {
			m.q[0] = float32(math.NaN())
		}
		at += len(m.p)
	}

	if len(s.second) > 0 {
		label := fmt.Sprint("second part of bucket ", b.Index)
		if err := ccl.AllReduce(b.Context, b.Comm, s.second, s.reduced, b.Op, ccl.WithLabel(label), ccl.WithKey("ddp "+label)); err != nil {
			return err
		}
	}
	s.adoptMatrices(b)
	for _, span := range s.plain {
		at += copy(b.Gradients[span[0]:span[1]], s.first[at:])
	}
	return nil
}

// adoptMatrices makes gradients the products of P and the reduced Q, which this rank's Q becomes
// after the errors are known.
func (s *lowRank) adoptMatrices(b *Bucket[float32]) {
	at := 0
	for _, m := range s.matrices {
		gradient := b.Gradients[m.at:][:m.rows*m.columns]
		errors := s.errors[m.at:][:len(gradient)]
		reduced := s.reduced[at:][:len(m.q)]
		at += len(m.q)

		if slices.ContainsFunc(reduced, isNotFinite) {
			copy(m.q, reduced)
			for i := range gradient {
				gradient[i] = float32(math.NaN())
			}
			continue
		}

		m.expand(errors)
		for i, g := range gradient {
			errors[i] = g - errors[i]
		}
		copy(m.q, reduced)
		m.expand(gradient)
	}
}

func isNotFinite(x float32) bool { return x-x != 0 }

// multiply makes P the product of a gradient and Q. Products are converted, so that no processor
// fuses them with a sum.
func (m *thinMatrix) multiply(gradient []float32) {
	clear(m.p)
	for i := range m.rows {
		p := m.p[i*m.rank:][:m.rank]
		for j, g := range gradient[i*m.columns:][:m.columns] {
			for k, q := range m.q[j*m.rank:][:len(p)] {
				p[k] += float32(g * q)
			}
		}
	}
}

// multiplyTransposed makes Q the product of the transpose of a gradient and P.
func (m *thinMatrix) multiplyTransposed(gradient []float32) {
	clear(m.q)
	for i := range m.rows {
		p := m.p[i*m.rank:][:m.rank]
		for j, g := range gradient[i*m.columns:][:m.columns] {
			q := m.q[j*m.rank:][:len(p)]
			for k := range q {
				q[k] += float32(g * p[k])
			}
		}
	}
}

// expand makes a gradient the product of P and the transpose of Q.
func (m *thinMatrix) expand(gradient []float32) {
	for i := range m.rows {
		p := m.p[i*m.rank:][:m.rank]
		row := gradient[i*m.columns:][:m.columns]
		for j := range row {
			var sum float32
			for k, q := range m.q[j*m.rank:][:len(p)] {
				sum += float32(p[k] * q)
			}
			row[j] = sum
		}
	}
}

// orthonormalize makes the columns of a matrix orthonormal, by Gram and Schmidt. A column that
// depends on those before it, or is not finite, becomes another one: a gradient of zeros loses no
// direction, and one with a NaN none of the next step.
func orthonormalize(matrix []float32, columns int) {
	rows := len(matrix) / columns

	for k := range columns {
		if subtractProjections(matrix, columns, k) {
			continue
		}

		for unit := range rows { // that of some unit vector is not short
			for i := range rows {
				matrix[i*columns+k] = 0
			}
			matrix[(k+unit)%rows*columns+k] = 1
			if subtractProjections(matrix, columns, k) {
				break
			}
		}
	}
}

// subtractProjections makes a column orthogonal to those before it, twice for the sake of rounding,
// and 1 long. It returns false if little is left of it.
func subtractProjections(matrix []float32, columns, k int) bool {
	before := columnNorm(matrix, columns, k)
	for range 2 {
		for other := range k {
			dot := 0.0
			for at := 0; at < len(matrix); at += columns {
				dot += float64(float64(matrix[at+other]) * float64(matrix[at+k]))
			}
			for at := 0; at < len(matrix); at += columns {
				matrix[at+k] -= float32(dot * float64(matrix[at+other]))
			}
		}
	}

	norm := columnNorm(matrix, columns, k)
	if !(norm > 1e-5*before) { // also if it is not finite
		return false
	}
	for at := k; at < len(matrix); at += columns {
		matrix[at] = float32(float64(matrix[at]) / norm)
	}
	return true
}

func columnNorm(matrix []float32, columns, k int) float64 {
	sum := 0.0
	for at := k; at < len(matrix); at += columns {
		sum += float64(float64(matrix[at]) * float64(matrix[at]))
	}
	return math.Sqrt(sum)
}
