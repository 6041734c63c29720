// Command alone trains on one rank, without goccl. It accumulates the gradients of small batches
// and clips them, evaluates and saves each epoch, and goes on from there the next time.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/loop"
	"github.com/goccl/goccl/examples/nn"
)

const batch, small, limit, rate, momentum = 128, 16, 0.5, 0.2, 0.9

func main() {
	path, epochs := flag.String("checkpoint", "digits.json", "`file`"), flag.Int("epochs", 5, "`passes` over the digits")
	flag.Parse()
	if err := run(*path, *epochs); err != nil {
		log.Fatal(err)
	}
}

// run trains up to a number of epochs.
func run(path string, epochs int) error {
	trainSet, testSet, err := digits.Sets[float32](1)
	if err != nil {
		return err
	}
	m, velocity := loop.NewModel(), loop.NewModel().Grads

	at := struct {
		Epochs           int
		Params, Velocity *[2][]float32
	}{0, &m.Params, &velocity}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	for at.Epochs < epochs {
		order := rand.New(rand.NewPCG(uint64(at.Epochs), 0)).Perm(trainSet.Len())
		train(m, velocity, trainSet, order)
		sums := m.Evaluate(testSet)

		at.Epochs++
		fmt.Printf("epoch %d: loss %.4f, accuracy %.3f\n", at.Epochs, sums[0]/sums[2], sums[1]/sums[2])
		text, err := json.Marshal(at)
		if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// train makes the steps of an epoch.
func train(m *loop.Model, velocity [2][]float32, set digits.Set[float32], order []int) {
	for indices := range slices.Chunk(order, batch) {
		for i := range m.Grads {
			clear(m.Grads[i])
		}
		for part := range slices.Chunk(indices, small) {
			m.Backward(set.Pick(part), len(indices))
		}

		clip(m.Grads)

		for i := range m.Params {
			nn.SGD(m.Params[i], velocity[i], m.Grads[i], rate, momentum)
		}
	}
}

// clip bounds the norm of all gradients.
func clip(grads [2][]float32) {
	sum := 0.0
	for _, x := range slices.Concat(grads[:]...) {
		sum += float64(x) * float64(x)
	}
	factor := min(limit/(math.Sqrt(sum)+1e-6), 1)
	for i := range grads {
		for j, x := range grads[i] {
			grads[i][j] = float32(float64(x) * factor)
		}
	}
}
