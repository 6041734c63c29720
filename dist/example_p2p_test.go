package dist_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/dist"
)

// Rank 1 receives from any rank.
func ExampleRecv() {
	run(func(rank int) error {
		if rank != 1 {
			return dist.Send([]int64{int64(10 * rank)}, 1, 0)
		}
		sum := int64(0)
		for range 2 {
			tensor := make([]int64, 1)
			if _, err := dist.Recv(tensor, dist.AnySource, 0); err != nil { // the sender is ignored
				return err
			}
			sum += tensor[0]
		}
		fmt.Println(sum)
		return nil
	})
	// Output: 20
}

// Around a ring.
func ExampleSendRecv() {
	run(func(rank int) error {
		output := make([]int64, 1)
		if _, err := dist.SendRecv(output, (rank+2)%3, []int64{int64(rank)}, (rank+1)%3, 0); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(output)
		}
		return nil
	})
	// Output: [2]
}

func ExampleIsend() {
	run(func(rank int) error {
		tensor := []int64{int64(rank)}
		switch rank {
		case 0:
			work, err := dist.Isend(tensor, 1, 0)
			if err != nil {
				return err
			}
			return work.Wait(context.Background()) // until then tensor must not be changed
		case 1:
			work, err := dist.Irecv(tensor, 0, 0)
			if err != nil {
				return err
			}
			if err := work.Wait(context.Background()); err != nil {
				return err
			}
			fmt.Println(tensor, "from rank", work.Source())
		}
		return nil
	})
	// Output: [0] from rank 0
}

// Both neighbours on a line.
func ExampleBatchIsendIrecv() {
	run(func(rank int) error {
		mine, left, right := []int64{int64(rank)}, []int64{-1}, []int64{-1}
		var ops []dist.P2POp
		if rank > 0 {
			ops = append(ops, dist.SendOp(mine, rank-1, 0), dist.RecvOp(left, rank-1, 0))
		}
		if rank < 2 {
			ops = append(ops, dist.SendOp(mine, rank+1, 0), dist.RecvOp(right, rank+1, 0))
		}
		works, err := dist.BatchIsendIrecv(ops)
		if err != nil {
			return err
		}
		for _, work := range works {
			if err := work.Wait(context.Background()); err != nil {
				return err
			}
		}
		if rank == 1 {
			fmt.Println(left, right)
		}
		return nil
	})
	// Output: [0] [2]
}
