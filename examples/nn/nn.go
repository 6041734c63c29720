// Package nn has the parts of neural networks that several examples compute with. They are loops
// on slices, and know nothing of ranks. A matrix is a slice that holds one row after the other.
//
// A function that changes a slice names it first. All functions may be called concurrently on
// different slices.
package nn

import (
	"math"
	"slices"
)

// Float is the set of types that the examples compute with.
type Float interface{ float32 | float64 }

// MulAdd adds the product of a (m×k) and b (k×n) to c (m×n). Element (i, p) of a is
// a[i*down+p*right], so that a transposed matrix needs no copy. Four rows of b are added to a row
// of c at a time, which quarters the loads and stores of c.
func MulAdd[F Float](c, a, b []F, m, k, n, down, right int) {
	for i := range m {
		row := c[i*n:][:n]
		p, at := 0, i*down
		for ; p+4 <= k; p, at = p+4, at+4*right {
			a0, a1, a2, a3 := a[at], a[at+right], a[at+2*right], a[at+3*right]
			b0, b1 := b[p*n:][:len(row)], b[(p+1)*n:][:len(row)]
			b2, b3 := b[(p+2)*n:][:len(row)], b[(p+3)*n:][:len(row)]
			for j := range row {
				row[j] += a0*b0[j] + a1*b1[j] + a2*b2[j] + a3*b3[j]
			}
		}

		for ; p < k; p, at = p+1, at+right {
			a0 := a[at]
			for j, v := range b[p*n:][:len(row)] {
				row[j] += a0 * v
			}
		}
	}
}

// Transpose returns the transpose of a matrix with the given columns.
func Transpose[F Float](a []F, columns int) []F {
	rows := len(a) / columns
	t := make([]F, len(a))
	for i := range rows {
		for j, v := range a[i*columns : (i+1)*columns] {
			t[j*rows+i] = v
		}
	}
	return t
}

// ReLU sets what is negative to 0.
func ReLU[F Float](y []F) {
	for i, v := range y {
		y[i] = max(v, 0)
	}
}

// ReLUAdjoint makes the gradient by the result y of ReLU the gradient by its input.
func ReLUAdjoint[F Float](dy, y []F) {
	for i, v := range y {
		if v == 0 {
			dy[i] = 0
		}
	}
}

// CrossEntropy returns the sum over samples of the cross-entropy, in nats, between the softmax of
// their logits, a row for each, and their labels, and how many are classified correctly. It
// replaces the logits by the gradient of that sum, divided by batch.
func CrossEntropy[F Float](logits []F, labels []uint8, batch int) (loss float64, correct int) {
	for i, label := range labels {
		classes := len(logits) / len(labels)
		row := logits[i*classes:][:classes]
		top := slices.Max(row)
		if row[label] == top {
			correct++
		}

		loss += float64(top - row[label])
		var norm F
		for j, v := range row {
			row[j] = F(math.Exp(float64(v - top)))
			norm += row[j]
		}
		loss += math.Log(float64(norm))
		for j := range row {
			row[j] /= norm * F(batch)
		}
		row[label] -= 1 / F(batch)
	}

	return loss, correct
}

// SGD moves parameters against their gradients, by stochastic gradient descent with momentum as
// torch defines it.
func SGD[F Float](params, velocity, grads []F, rate, momentum F) {
	for i, g := range grads {
		velocity[i] = momentum*velocity[i] + g
		params[i] -= rate * velocity[i]
	}
}
