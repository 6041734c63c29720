package ccltest

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// firstFailure returns what the author of s sees first, with groups of few ranks.
func firstFailure(t *testing.T, s *subject, ranks ...int) string {
	t.Helper()
	for _, c := range checks {
		for _, w := range c.media {
			for _, n := range ranks {
				err := c.run(s, w, n)
				if _, skip := errors.AsType[*skipped](err); err != nil && !skip {
					return failure(w.in(err), c, t.Name()+"/case")
				}
			}
		}
	}
	t.Fatal("it passes")
	return ""
}

// The mistakes that authors make: for each, the failure says what is wrong.
func TestMistakes(t *testing.T) {
	for _, m := range []struct {
		name   string
		coll   ccl.Collective
		kernel *ccl.Kernel
		want   []string // in this order
	}{
		{"one step too few", ccl.CollAllReduce, passAround(-1), []string{
			`inputs, in all_reduce of float32, sum of 6 elements:\n` +
				`  on rank [012], elements 0 to 5: the input of rank [012] is missing\n`,
			`rule: Result`,
			`rank 0\n +1  SendRecv        in\[0:1\] to 1, scratch\[0:1\] from 2\n`,
		}},
		{"one step too many", ccl.CollAllReduce, passAround(1), []string{
			`inputs, in all_reduce of float32, sum of 6 elements:\n` +
				`(  on rank 0, elements 0 to 5: the input of rank 0 is there twice\n|` +
				`  on rank 1, elements 0 to 5: the input of rank 1 is there twice\n|` +
				`  on rank 2, elements 0 to 5: the input of rank 2 is there twice\n){3}`,
		}},
		{"a ring that is one step short", ccl.CollAllReduce, ringReduceKernel(oneStep), []string{
			`on ranks 0-2, elements 0 to 5: the input of ranks 0-2 is missing, what memory held before the call is there\n`,
		}},
		{"a block that is forgotten", ccl.CollAllGather, ringGatherKernel(forgetsOwn), []string{
			`element 0 of rank 1's block arrived as`,
			`on ranks 0-2, elements 0 to 1 of rank 0's block: the input of rank 0 is missing, what memory held before the call is there\n`,
		}},
		{"the wrong peer", ccl.CollAllReduce, ringReduceKernel(wrongPeer), []string{
			`rank 1 waits for a message from rank 0: SendRecvReduce at kernels_test\.go:\d+\n`,
			`rule: Messages`,
			`rank 1\n +1  SendRecvReduce  in\[0:0\] to 0 \(NOT RECEIVED\), out\[0:1\] from 0 \(NOT SENT\)\n`,
		}},
		{"a missing epilogue", ccl.CollAllReduce, ringReduceKernel(noEpilogue), []string{
			`the avg of \[.*\]: it is the sum; Epilogue was not called\nmedium: `,
		}},
		{"data that is passed on before it is received", ccl.CollBroadcast, hastyChain(), []string{
			`on rank 2, elements 0 to 5: the input of rank 0 is missing, what memory held before the call is there\n`,
			`rank 1\n +1  Send            out\[0:1\] to 2\n +1  Recv            out\[0:1\] from 0\n`,
		}},
		{"partners that there are not", ccl.CollAllReduce, doublingReduceKernel(withoutPeers), []string{
			`on rank 1, elements 0 to 5: the input of rank 2 is missing\n`,
		}},
		{"a message that no rank receives", ccl.CollBroadcast, chainKernel(fullCircle), []string{
			`rank 0 has returned from its kernel\n`,
			`rank 2 waits for rank 0 to take a message: Send at kernels_test\.go:\d+\n`,
			`rank 2\n +2  Recv            out\[0:1\] from 1\n +3  Send            out\[0:1\] to 0 \(NOT RECEIVED\)`,
		}},
		{"a message of another length", ccl.CollBroadcast, inPartsKernel(2, 3, swaps), []string{
			`receive from rank 0 \(Recv at kernels_test\.go:\d+\): protocol error with rank 0: it sent 0 bytes where this rank expects 4`,
			`out\[0:1\] from 0 \(IT SENDS in\[0:0\]\)`,
		}},
		{"a peer that there is not", ccl.CollAllReduce, doublingReduceKernel(undeclared), []string{
			`SendRecvReduce at kernels_test\.go:\d+, to rank 3, from rank 3: rank 3 is not a rank of a group of 3\n`,
		}},
		{"two parts in the wrong order", ccl.CollBroadcast, inPartsKernel(3, 2, swaps), []string{
			`inputs, in broadcast of int64, 6 elements from root 1:\n` +
				`  on rank 2, elements 0 to 2: the input of rank 1 comes from 3 elements further on\n` +
				`  on rank 2, elements 3 to 5: the input of rank 1 comes from 3 elements before\n`,
		}},
		{"a wrong root", ccl.CollBroadcast, chainKernel(rootZero), []string{
			`elements 0 to 5: the input of rank 1 is missing, what memory held before the call is there\n`,
		}},
		{"the next rank's block", ccl.CollAllToAll, shiftedBlocks(), []string{
			`on ranks 0, 1, elements 0 to 1 of rank 1's block: the input of rank 1 is missing, the input of rank 2 is there, where it does not belong\n`,
		}},
		{"a wrong operation", ccl.CollAllReduce, byHandKernel(inRankOrder, onlySum), []string{
			`inputs: in a sum of the same lengths each arrives once; look at the operation, its order, earlier calls and timing\n`,
		}},
	} {
		t.Run(m.name, func(t *testing.T) {
			s := subjectOf(m.coll, m.kernel)
			hangs(s)
			text := firstFailure(t, s, 3)
			rest := text
			for _, want := range m.want {
				at := regexp.MustCompile(want).FindStringIndex(rest)
				if at == nil {
					t.Fatalf("%s\nis not in\n%s", want, text)
				}
				rest = rest[at[1]:]
			}
		})
	}
}

// The guide shows the failure of a kernel that sends before it receives.
func TestGuideShowsAFailure(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/writing-an-algorithm.md")
	if err != nil {
		t.Fatal(err)
	}
	err = results(subjectOf(ccl.CollBroadcast, hastyChain()), poll, 3)
	if err == nil {
		t.Fatal("it passes")
	}
	text := failure(poll.in(err), checkNamed("Result"), "TestConformance/broadcast/Result/poll/ranks=3") + picture(t, err)
	command := regexp.MustCompile(`(?m)^again: go test.* -run`) // with the flags of this test
	text = command.ReplaceAllString(strings.Replace(text, testedPackage(), "example.com/mine/chain", 1), "again: go test -run")
	if !strings.Contains(string(guide), "```text\n"+text+"\n```\n") {
		t.Errorf("the guide does not have\n%s", text)
	}
}

// passAround is an all-reduce in which every input goes around a ring, some steps too far.
func passAround(tooFar int) *ccl.Kernel {
	k := ringReduceKernel(none)
	k.Run = func(c *ccl.Call) error {
		n, have, scratch := c.In().Len(), c.In(), c.Scratch(3*c.In().Len())
		ring := topology.NewRing(c.Size(), c.Rank())
		sum := scratch.Slice(2*n, 3*n)
		if err := c.Copy(sum, c.In()); err != nil {
			return err
		}
		for s := range c.Size() - 1 + tooFar {
			next := scratch.Slice(s%2*n, (s%2+1)*n)
			if err := c.SendRecv(ring.Next, have, ring.Prev, next); err != nil {
				return err
			}
			if err := c.Reduce(sum, sum, next); err != nil {
				return err
			}
			have = next
		}
		c.Epilogue(sum)
		return c.Copy(c.Out(), sum)
	}
	return k
}

// shiftedBlocks is an all-to-all of two ranks or more that puts what it receives one block too early.
func shiftedBlocks() *ccl.Kernel {
	k := pairwiseExchange(none)
	k.Run = func(c *ccl.Call) error {
		n, me := c.Size(), c.Rank()
		if err := c.Copy(c.OutBlock(me), c.InBlock(me)); err != nil {
			return err
		}
		for s := 1; s < n; s++ {
			to, from := (me+s)%n, (me+n-s)%n
			place := c.OutBlock(from)
			if before := c.OutBlock((from + n - 1) % n); n > 2 && before.Len() == place.Len() {
				place = before
			}
			if err := c.SendRecv(to, c.InBlock(to), from, place); err != nil {
				return err
			}
		}
		return nil
	}
	return k
}

// hastyChain is a broadcast in which all ranks send before they receive.
func hastyChain() *ccl.Kernel {
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		ring := topology.NewRing(c.Size(), c.Rank())
		send := func() error {
			if ring.Next == c.Root() {
				return nil
			}
			return c.Send(ring.Next, c.Out())
		}
		if c.Rank() == c.Root() {
			return send()
		}
		if err := send(); err != nil {
			return err
		}
		return c.Recv(ring.Prev, c.Out())
	}
	return k
}

// A failure stays short, however many messages a call has and however many ranks make it.
func TestMessagesAreBounded(t *testing.T) {
	s := subjectOf(ccl.CollBroadcast, chainKernel(none))
	s.algorithm.Kernels[ccl.CollBroadcast].Run = func(c *ccl.Call) error {
		for range 40 {
			if err := chain(none)(c); err != nil {
				return err
			}
		}
		if c.Rank() == 11 {
			c.Out().Bytes()[0]++
		}
		return nil
	}
	text := firstFailure(t, s, 12)
	if lines := strings.Count(text, "\n"); lines > 140 || !strings.Contains(text, "... 4 more ranks") || !strings.Contains(text, "more\n") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}
