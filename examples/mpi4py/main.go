// Mpi4py fits a line on ranks in Go and Python, which one mpirun starts: this program and fit.py.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/goccl/goccl/transport/mpi"
)

const (
	samples = 100 // of each rank
	steps   = 200
	rate    = 0.5
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := mpi.Unchecked(ctx)
	if err != nil {
		return err
	}
	if err := fitLine(c); err != nil {
		return err // without Close, which would wait for ranks that wait for this one: mpirun ends them
	}
	return c.Close(ctx)
}

// fitLine makes the same calls in the same order as fit.py. Each line with mpi. has its counterpart
// there.
func fitLine(c *mpi.UncheckedComm) error {
	weights := make([]float64, 2)
	if c.Rank() == 0 {
		weights[0], weights[1] = -1, 3 // where the fit starts, on all ranks
	}
	if err := mpi.UncheckedBroadcast(c, weights, 0); err != nil {
		return err
	}
	n := float64(samples * c.Size())
	for range steps {
		gradient := make([]float64, 2)
		for i := range samples {
			x := float64(i*c.Size()+c.Rank()) / n // this rank's samples lie between those of the others
			e := weights[0]*x + weights[1] - (2*x + 1)
			gradient[0] += 2 * e * x / n
			gradient[1] += 2 * e / n
		}
		if err := mpi.UncheckedAllReduce(c, gradient, gradient, mpi.UncheckedSum); err != nil {
			return err
		}
		weights[0] -= rate * gradient[0]
		weights[1] -= rate * gradient[1]
	}

	all := make([]float64, 2*c.Size())
	if err := mpi.UncheckedAllGather(c, weights, all); err != nil {
		return err
	}

	for i, w := range all {
		if math.Abs(w-weights[i%2]) > 1e-9 {
			return errors.New("the ranks have different weights")
		}
	}
	fmt.Printf("rank %d of %d, Go: y = %.3f x + %.3f on all ranks\n", c.Rank(), c.Size(), weights[0], weights[1])
	return nil
}
