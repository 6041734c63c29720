package config

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// edges are sizes and numbers of ranks around which random rules begin and end.
var edges = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}

func randomShape(rnd *rand.Rand) ccl.Shape {
	pick := func(n int) int { return rnd.IntN(n) }
	ranks := 1 + pick(len(edges))
	nodes := pick(min(ranks, 6))
	return ccl.Shape{
		Collective: ccl.Collectives()[pick(len(ccl.Collectives()))], DType: ccl.DTypes()[pick(len(ccl.DTypes()))], Op: ccl.Ops()[pick(len(ccl.Ops()))],
		Bytes: edges[pick(len(edges))], Ranks: ranks, Nodes: nodes, // fewer than ranks; 0 is 1
	}
}

// someOf returns one of the values, or a few.
func someOf[T any](rnd *rand.Rand, values []T) []T {
	values = slices.Clone(values)
	rnd.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values[:max(1, rnd.IntN(6)-2)]
}

// randomRules writes n rules with few and small values, so that they often meet.
func randomRules(rnd *rand.Rand, n int) string {
	spanOf := func(least int) string {
		lo := least + rnd.IntN(6)
		return []string{fmt.Sprint(lo), fmt.Sprintf("%d-", lo), fmt.Sprintf("-%d", lo), fmt.Sprintf("%d-%d", lo, lo+rnd.IntN(4))}[rnd.IntN(4)]
	}
	var text strings.Builder
	for range n {
		var fields []string
		reduces := true
		if rnd.IntN(2) == 0 {
			some := someOf(rnd, ccl.Collectives())
			reduces = !slices.ContainsFunc(some, func(c ccl.Collective) bool { return !c.Traits().Reduces })
			fields = append(fields, "collective: "+written(some))
		}
		if rnd.IntN(2) == 0 {
			fields = append(fields, `bytes: "`+spanOf(0)+`"`)
		} else if rnd.IntN(2) == 0 {
			fields = append(fields, "bytes: "+[]string{`[1, "3-"]`, `["-2", 4, "6-7"]`, `["5-", "2-3"]`}[rnd.IntN(3)])
		}
		if rnd.IntN(2) == 0 {
			fields = append(fields, `ranks: "`+spanOf(1)+`"`)
		} else if rnd.IntN(2) == 0 {
			fields = append(fields, "ranks: "+[]string{"[2, 4, 8]", `["-3", "6-"]`}[rnd.IntN(2)])
		}
		if rnd.IntN(4) == 0 {
			fields = append(fields, "nodes: "+[]string{"1", "2", `"2-"`, `"-2"`, `"3-4"`, `[1, "3-"]`}[rnd.IntN(6)])
		}
		if rnd.IntN(4) == 0 {
			fields = append(fields, "dtype: "+written(someOf(rnd, ccl.DTypes())))
		}
		if reduces && rnd.IntN(4) == 0 {
			fields = append(fields, "op: "+written(someOf(rnd, ccl.Ops())))
		}
		fields = append(fields, "algorithm: "+[]string{"plain", "other", "reducer"}[rnd.IntN(3)])
		fmt.Fprintf(&text, "  - {%s}\n", strings.Join(fields, ", "))
	}
	return text.String()
}

const entriesOfRules = `version: 1
algorithms: {plain: {module: plain}, other: {module: plain}, reducer: {module: ring}}
rules:
`

// unchecked resolves a configuration without the checks of its rules.
func unchecked(t *testing.T, rules string) *Settings {
	t.Helper()
	c := parse(t, entriesOfRules+rules)
	s, err := c.Resolve(Request{Registry: testRegistry(), Ranks: 4, Algorithm: "plain"})
	require.NoError(t, err)
	s.algorithm = c.algorithm
	return s
}

// Every call is treated as a sample is: the same rules match both. So a gap or an overlap that no sample shows
// does not exist.
func TestSamples(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 2))
	for range 300 {
		rules := randomRules(rnd, 1+rnd.IntN(6))
		s := unchecked(t, rules)
		matching := func(shape ccl.Shape) (all string) {
			for i := range s.config.rules {
				r := &s.config.rules[i]
				a := s.candidate(r.algorithm.value).algorithm
				require.Equal(t, r.matches(shape, a), r.mismatch(shape, a) == "", "rule %d of\n%s%+v", i+1, rules, shape)
				if r.matches(shape, a) {
					all += fmt.Sprint(i, " ")
				}
			}
			return all
		}
		known := map[string]bool{}
		for _, shape := range s.samples() {
			require.True(t, shape.Nodes == 1 || shape.Nodes < shape.Ranks, "no group makes %+v", shape)
			known[matching(shape)] = true
		}
		for range 200 {
			shape := randomShape(rnd)
			require.True(t, known[matching(shape)], "%s%+v", rules, shape)
		}
	}
}

// toldApart returns the values that the rules name, and one of the others, which the rules
// treat alike.
func toldApart[T fmt.Stringer](rules string, values []T) []T {
	var some []T
	others := 0
	for _, v := range values {
		if named := strings.Contains(rules, v.String()); named || others == 0 {
			some = append(some, v)
			if !named {
				others++
			}
		}
	}
	return some
}

// A special rule is refused exactly if it is the first to match for no call at all.
func TestRulesThatNeverMatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 1))
	refused := 0
	for range 200 {
		rules := randomRules(rnd, 2+rnd.IntN(4))
		s := unchecked(t, rules)
		// All calls that random rules can tell apart.
		first := make([]int, len(s.config.rules))
		lastNodes := 2
		if strings.Contains(rules, "nodes") {
			lastNodes = 6
		}
		for _, coll := range ccl.Collectives() {
			for _, dtype := range toldApart(rules, ccl.DTypes()) {
				for _, op := range toldApart(rules, ccl.Ops()) {
					for bytes := range 12 {
						for ranks := 1; ranks < 12; ranks++ {
							for nodes := 1; nodes == 1 || nodes < min(ranks, lastNodes); nodes++ {
								shape := ccl.Shape{Collective: coll, DType: dtype, Op: op, Bytes: bytes, Ranks: ranks, Nodes: nodes}
								for i := range s.config.rules {
									if s.config.rules[i].matches(shape, s.candidate(s.config.rules[i].algorithm.value).algorithm) {
										first[i]++
										break
									}
								}
							}
						}
					}
				}
			}
		}
		err := s.checkRules(Request{})
		bad := -1
		for i := range s.config.rules {
			r := &s.config.rules[i]
			kernelless := slices.ContainsFunc(r.collective.value, func(c ccl.Collective) bool {
				return s.candidate(r.algorithm.value).algorithm.Kernels[c] == nil
			})
			if kernelless || first[i] == 0 && r.isSpecial() {
				bad = i
				break
			}
		}
		if bad < 0 {
			require.NoError(t, err, rules)
			continue
		}
		refused++
		var e *Error
		require.ErrorAs(t, err, &e, rules)
		require.Equal(t, s.config.rules[bad].line, e.Line, "the first\n%s", rules)
	}
	require.Greater(t, refused, 20)
}

func TestRuleErrors(t *testing.T) {
	for _, c := range []struct{ rules, want string }{
		{"  - {algorithm: plain}\n  - {collective: all_reduce, bytes: 1MiB-, algorithm: other}\n",
			"ccl.yaml:5:5: rules[2]: the rule never matches: rule 1 (ccl.yaml:4) matches all that it does; put it before, or remove it"},
		{"  - {bytes: -1KiB, algorithm: plain}\n  - {bytes: 1025-, algorithm: plain}\n  - {op: sum, algorithm: other}\n",
			"ccl.yaml:6:5: rules[3]: the rule never matches: rules 1 and 2 (ccl.yaml:4, ccl.yaml:5) together match all that it does; put it before, or remove it"},
		{"  - {bytes: 4, algorithm: plain}\n  - {ranks: [-2, 4], nodes: 4-, algorithm: other}\n",
			"ccl.yaml:5:29: rules[2].nodes: the rule never matches: a group with two levels has more ranks than nodes; nodes is 1 for any other group"},
		{"  - {ranks: 3-, algorithm: plain}\n  - {nodes: 2-, algorithm: other}\n",
			"ccl.yaml:5:5: rules[2]: the rule never matches: rule 1 (ccl.yaml:4) matches all that it does; put it before, or remove it"},
		{"  - {collective: broadcast, algorithm: reducer}\n",
			"ccl.yaml:4:40: rules[1].algorithm: algorithm ring (entry reducer) has no kernel for broadcast"},
	} {
		_, err := tryResolve(t, entriesOfRules+c.rules, Request{})
		require.EqualError(t, err, c.want)
		require.ErrorAs(t, err, new(*Error))

		// If the algorithm is fixed, the rules are not used, and the same mistake is no error.
		resolve(t, entriesOfRules+c.rules, Request{Algorithm: "plain"})
	}
	_, err := tryResolve(t, "version: 1\nalgorithms: {a: {module: plain}}\n", Request{})
	require.EqualError(t, err, "ccl.yaml: rules: defaults.algorithm is auto, but the file is without rules; add a rule such as {algorithm: direct}, or name an algorithm")
	_, err = Parse("ccl.yaml", []byte(entriesOfRules+"  - {collective: barrier, algorithm: plain}\n"))
	require.EqualError(t, err, "ccl.yaml:4:18: rules[1].collective: the engine executes barriers itself: they need no algorithm and no rule")
	_, err = Parse("ccl.yaml", []byte(entriesOfRules+strings.Repeat("  - {algorithm: plain}\n", 257)))
	require.EqualError(t, err, "ccl.yaml:260:5: rules[257]: the file has more than 256 rules (each range in a list counts)")
}

// An algorithm without a kernel that reduces cannot be chosen by operation.
func TestRuleWithUselessOp(t *testing.T) {
	registry := testRegistry()
	gatherer := registry["fancy"]
	delete(gatherer.Kernels, ccl.CollAllReduce)
	_, err := tryResolve(t, "version: 1\nalgorithms: {a: {module: fancy}}\nrules: [{op: sum, algorithm: a}]\n", Request{Registry: registry})
	require.EqualError(t, err, "ccl.yaml:3:14: rules[1].op: the rule never matches: algorithm fancy (entry a) has no kernel that takes an op")
}

func TestFindings(t *testing.T) {
	for _, c := range []struct {
		rules string
		want  []string
	}{
		{"  - {algorithm: plain}\n", nil},
		{"  - {collective: all_reduce, bytes: 1MiB-, algorithm: other}\n  - {algorithm: plain}\n", nil}, // a special case
		{"  - {bytes: 1MiB-, algorithm: plain}\n  - {collective: broadcast, algorithm: plain}\n  - {algorithm: plain}\n", nil},
		{"  - {bytes: 1MiB-, algorithm: plain}\n  - {collective: broadcast, algorithm: other}\n  - {algorithm: plain}\n", []string{
			"ccl.yaml:5: rules 1 and 2 overlap: both match broadcast (float32, 1048576 bytes, 1 ranks), for example; rule 1 goes first"}},
		{"  - {nodes: 2-, algorithm: other}\n  - {algorithm: plain}\n", nil},
		{"  - {nodes: 2-, algorithm: other}\n  - {nodes: 1, algorithm: plain}\n", nil},
		{"  - {nodes: 2-, algorithm: other}\n  - {ranks: 3-, algorithm: plain}\n  - {ranks: 1-2, nodes: 1, algorithm: other}\n", nil}, // several nodes have 3 ranks or more
		{"  - {ranks: [1-2, 8-], nodes: 2-, algorithm: other}\n  - {ranks: 8-, algorithm: plain}\n  - {algorithm: other}\n", nil},
		{"  - {nodes: 2-, algorithm: other}\n  - {nodes: 1, ranks: 1, algorithm: plain}\n", []string{
			"ccl.yaml:5: no rule matches all_reduce (float32, sum, 0 bytes, 2 ranks), for example: such calls fail; end the rules with one that has an algorithm only"}},
		{"  - {collective: scan, nodes: 2-4, algorithm: plain}\n  - {nodes: 3-, algorithm: other}\n  - {algorithm: plain}\n", []string{
			"ccl.yaml:5: rules 1 and 2 overlap: both match scan (float32, sum, 0 bytes, 4 ranks on 3 nodes), for example; rule 1 goes first"}},
		{"  - {algorithm: reducer}\n  - {algorithm: plain}\n  - {algorithm: reducer}\n", []string{
			"ccl.yaml:6: rule 3 never matches: rules 1 and 2 (ccl.yaml:4, ccl.yaml:5) together match all that it does"}},
		{"  - {algorithm: reducer}\n", []string{
			"ccl.yaml:4: no rule matches reduce (float32, sum, 0 bytes, 1 ranks), for example: such calls fail; end the rules with one that has an algorithm only"}},
		{"  - {bytes: 4-1MiB, ranks: 2-, dtype: float32, op: max, algorithm: plain}\n  - {collective: broadcast, algorithm: plain}\n  - {collective: all_gather, algorithm: plain}\n", []string{
			"ccl.yaml:6: no rule matches all_reduce (uint8, sum, 0 bytes, 1 ranks), for example: such calls fail; end the rules with one that has an algorithm only"}},
	} {
		s := resolve(t, entriesOfRules+c.rules, Request{})
		var got []string
		for _, f := range s.Findings() {
			got = append(got, f.Origin+": "+f.Message)
		}
		require.Equal(t, c.want, got)
		require.Nil(t, resolve(t, entriesOfRules+c.rules, Request{Algorithm: "plain"}).Findings())
	}
}

// Rules with more thresholds than can be looked at are not rejected, and the one finding says so.
func TestManyRules(t *testing.T) {
	var rules strings.Builder
	for i := range 80 {
		fmt.Fprintf(&rules, "  - {bytes: %d, algorithm: plain}\n  - {ranks: %d, algorithm: other}\n  - {nodes: %d, algorithm: reducer}\n", 2*i, 2*i+1000, 2*i+2)
	}
	s := resolve(t, entriesOfRules+rules.String(), Request{})
	require.Equal(t, []Finding{{"ccl.yaml:4", "the rules have too many thresholds: whether they overlap, or leave calls out, is not known"}}, s.Findings())
}

// A rule that sends calls on one node to a kernel with two levels is a finding, unless earlier rules take these calls.
func TestFindingsOfTwoLevels(t *testing.T) {
	registry := testRegistry()
	kernel := func(twoLevels bool) *ccl.Kernel {
		return &ccl.Kernel{Doc: "for tests", TwoLevels: twoLevels, Cost: func(ccl.Shape) ccl.Cost { return ccl.Cost{} }, Run: func(*ccl.Call) error { return nil }}
	}
	registry["levels"] = &ccl.Algorithm{Name: "levels", Doc: "for tests", Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: kernel(true), ccl.CollAllGather: kernel(true), ccl.CollScan: kernel(false),
	}}
	const entries = "version: 1\nalgorithms: {plain: {module: plain}, two: {module: levels}}\nrules:\n"
	for rules, want := range map[string]string{
		"  - {nodes: 2-, algorithm: two}\n":                                                                      "",
		"  - {nodes: [2, 4-8], collective: all_reduce, algorithm: two}\n":                                        "",
		"  - {collective: scan, algorithm: two}\n":                                                               "",
		"  - {nodes: 1, algorithm: plain}\n  - {algorithm: two}\n":                                               "",
		"  - {ranks: 3-, nodes: 2-, algorithm: two}\n":                                                           "",
		"  - {algorithm: two}\n":                                                                                 "ccl.yaml:4: rule 1: levels needs two levels; give it nodes: 2-",
		"  - {nodes: -4, algorithm: two}\n":                                                                      "ccl.yaml:4: rule 1: levels needs two levels; give it nodes: 2-",
		"  - {ranks: 2, collective: scan, algorithm: plain}\n  - {algorithm: two}\n":                             "ccl.yaml:5: rule 2: levels needs two levels; give it nodes: 2-",
		"  - {bytes: 4KiB-, nodes: 1, algorithm: plain}\n  - {collective: [all_gather, scan], algorithm: two}\n": "ccl.yaml:5: rule 2: levels needs two levels; give it nodes: 2-",
	} {
		s := resolve(t, entries+rules+"  - {algorithm: plain}\n", Request{Registry: registry})
		got := ""
		for _, f := range s.Findings() {
			if strings.Contains(f.Message, "two levels") {
				got += f.Origin + ": " + f.Message
			}
		}
		require.Equal(t, want, got, rules)

		// The finding is about calls that fail.
		fails := false
		for _, coll := range ccl.Collectives() {
			for _, bytes := range []int{4, 4 << 10} {
				_, err := s.Choose(ccl.Shape{Collective: coll, DType: ccl.Float32, Ranks: 4, Nodes: 1, Bytes: bytes}, "")
				fails = fails || err != nil
			}
		}
		require.Equal(t, want != "", fails, rules)
	}
}
