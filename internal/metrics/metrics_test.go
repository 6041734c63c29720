package metrics

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/flight"
)

// sample is a line of the format: the metric and its labels, whose values are as they were before
// they were written.
type sample struct {
	metric string
	labels map[string]string
	value  float64
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*`)
)

// parse reads the text format of Prometheus and accepts nothing beside it: each metric once, HELP
// and TYPE before its samples, and no two samples with the same labels.
func parse(text string) (all []sample, err error) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return nil, errors.New("the last line has no end")
	}
	types, helped, seen, current := map[string]string{}, "", map[string]bool{}, ""
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if text == "" {
			break
		}
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, words, _ := strings.Cut(help, " ")
			if types[name] != "" || words == "" || strings.Contains(words, `\`) {
				return nil, fmt.Errorf("help twice, none, or with a character to escape: %q", line)
			}
			helped = name
			continue
		}
		if typed, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(typed, " ")
			if name != helped || name != metricName.FindString(name) || types[name] != "" || kind != "counter" && kind != "gauge" {
				return nil, fmt.Errorf("type: %q", line)
			}
			types[name], current = kind, name
			continue
		}
		s, err := parseSample(line)
		if err != nil {
			return nil, err
		}
		id := fmt.Sprint(s.metric, s.labels) // in the order of names
		if s.metric != current || seen[id] {
			return nil, fmt.Errorf("not below its type, or twice: %q", line)
		}
		seen[id] = true
		all = append(all, s)
	}
	return all, nil
}

func parseSample(line string) (s sample, err error) {
	wrong := fmt.Errorf("no sample: %q", line)
	s.metric, s.labels = metricName.FindString(line), map[string]string{}
	rest := line[len(s.metric):]
	if inside, ok := strings.CutPrefix(rest, "{"); ok {
		for rest = inside; !strings.HasPrefix(rest, "}"); rest = strings.TrimPrefix(rest, ",") {
			name := labelName.FindString(rest)
			quoted, ok := strings.CutPrefix(rest[len(name):], `="`)
			if !ok || name == "" || strings.HasPrefix(name, "__") || s.labels[name] != "" {
				return s, wrong
			}
			var value strings.Builder
			for !strings.HasPrefix(quoted, `"`) {
				r, size := rune(0), 0
				for _, r = range quoted {
					size = len(string(r))
					break
				}
				switch {
				case size == 0:
					return s, wrong
				case r != '\\':
					value.WriteRune(r)
				case len(quoted) > 1 && strings.Contains(`\"n`, quoted[1:2]):
					value.WriteString(map[byte]string{'\\': `\`, '"': `"`, 'n': "\n"}[quoted[1]])
					size = 2
				default:
					return s, wrong
				}
				quoted = quoted[size:]
			}
			if rest = quoted[1:]; !strings.HasPrefix(rest, ",") && !strings.HasPrefix(rest, "}") {
				return s, wrong
			}
			s.labels[name] = value.String()
		}
		rest = rest[1:]
	}
	number, ok := strings.CutPrefix(rest, " ")
	if s.value, err = strconv.ParseFloat(number, 64); !ok || s.metric == "" || err != nil {
		return s, wrong
	}
	return s, nil
}

func written(t *testing.T, j *Job) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Write(&b, j))
	return b.String()
}

// job has two ranks of a training, with calls in two groups.
func job() *Job {
	counters := []flight.Counter{
		{Collective: "all_reduce", Calls: 12, Failures: 1, Bytes: 4096, Duration: 1500 * time.Millisecond, Waiting: time.Millisecond},
		{Collective: "recv", Calls: 3, Bytes: 24},
	}
	at := time.Unix(1000, 0)
	marks := []flight.Mark{
		{Number: 1, Group: "0a", Step: 1, Label: "compute", At: at},
		{Number: 2, Group: "0a", Step: 1, Label: "backward", At: at.Add(2 * time.Second)},
		{Number: 3, Group: "0a", Step: 2, Label: "compute", At: at.Add(5 * time.Second)},
	}
	waiting := flight.Waiting{Of: map[int]flight.Lateness{0: {}, 10: {Share: 1, Ratio: 0.25}}}
	return &Job{Node: "0", Host: "a", Restarts: 2, Waiting: waiting, Ranks: []flight.Rank{
		{Rank: 0, PID: 77, Groups: []flight.GroupCalls{{ID: "0a", Counters: counters}}, Marks: marks},
		{Rank: 10, PID: 78, Groups: []flight.GroupCalls{{ID: "0a", Counters: counters}, {ID: "0b", Name: `"pair" of ranks 0, 10, made by new_group, call 1`, Counters: counters}}, Counters: counters},
	}}
}

func TestWrite(t *testing.T) {
	require.Equal(t, `# HELP goccl_calls_total Calls that have ended, those that have failed too.
# TYPE goccl_calls_total counter
goccl_calls_total{rank="0",group="default",collective="all_reduce",node="0"} 12
goccl_calls_total{rank="10",group="closed",collective="all_reduce",node="0"} 12
goccl_calls_total{rank="10",group="default",collective="all_reduce",node="0"} 12
goccl_calls_total{rank="10",group="pair of ranks 0, 10",collective="all_reduce",node="0"} 12
# HELP goccl_failures_total Calls that have failed.
# TYPE goccl_failures_total counter
goccl_failures_total{rank="0",group="default",collective="all_reduce",node="0"} 1
goccl_failures_total{rank="10",group="closed",collective="all_reduce",node="0"} 1
goccl_failures_total{rank="10",group="default",collective="all_reduce",node="0"} 1
goccl_failures_total{rank="10",group="pair of ranks 0, 10",collective="all_reduce",node="0"} 1
`, section(written(t, job()), 0, 2))
	require.Equal(t, `# HELP goccl_message_bytes_total Bytes of messages that have not failed.
# TYPE goccl_message_bytes_total counter
goccl_message_bytes_total{rank="0",group="default",direction="recv",node="0"} 24
goccl_message_bytes_total{rank="10",group="closed",direction="recv",node="0"} 24
goccl_message_bytes_total{rank="10",group="default",direction="recv",node="0"} 24
goccl_message_bytes_total{rank="10",group="pair of ranks 0, 10",direction="recv",node="0"} 24
`, section(written(t, job()), 7, 8))
	require.Equal(t, `# HELP goccl_waiting_caused_ratio Share of the time of the other ranks that they waited for this rank, on average, in the last minute.
# TYPE goccl_waiting_caused_ratio gauge
goccl_waiting_caused_ratio{rank="0",node="0"} 0
goccl_waiting_caused_ratio{rank="10",node="0"} 0.25
# HELP goccl_step Number of the step of the training.
# TYPE goccl_step gauge
goccl_step{rank="0",group="default",node="0"} 2
# HELP goccl_step_seconds Time that the last whole step took, by what the program did.
# TYPE goccl_step_seconds gauge
goccl_step_seconds{rank="0",group="default",part="backward",node="0"} 3
goccl_step_seconds{rank="0",group="default",part="compute",node="0"} 2
# HELP goccl_restarts_total Restarts of all ranks after a failure.
# TYPE goccl_restarts_total counter
goccl_restarts_total{node="0"} 2
# HELP goccl_rank_info 1 for each rank whose records are read, with its process.
# TYPE goccl_rank_info gauge
goccl_rank_info{rank="0",pid="77",host="a",node="0"} 1
goccl_rank_info{rank="10",pid="78",host="a",node="0"} 1
`, section(written(t, job()), 8, len(Metrics)))
}

// section returns some metrics of a text.
func section(text string, from, to int) string {
	all := strings.SplitAfter(strings.ReplaceAll(text, "\n# HELP", "\n\x00# HELP"), "\x00")
	return strings.ReplaceAll(strings.Join(all[from:to], ""), "\x00", "")
}

// Before the job starts, nothing is known of it but that it was not restarted.
func TestWriteNothing(t *testing.T) {
	require.Empty(t, written(t, &Job{Restarts: -1}))
	all, err := parse(written(t, &Job{}))
	require.NoError(t, err)
	require.Equal(t, []sample{{"goccl_restarts_total", map[string]string{}, 0}}, all)
}

// Groups of one name are one series, as the format wants it.
func TestGroupsOfOneName(t *testing.T) {
	j := job()
	j.Ranks[1].Groups[0].Name = j.Ranks[1].Groups[1].Name
	require.Contains(t, written(t, j), `goccl_calls_total{rank="10",group="pair of ranks 0, 10",collective="all_reduce",node="0"} 24`)
	_, err := parse(written(t, j))
	require.NoError(t, err)
}

// Groups of the same ranks that a program makes again and again are one series: its counters are
// their sum, and its step is that of the last mark.
func TestGroupsMadeAgain(t *testing.T) {
	j := job()
	r := &j.Ranks[0]
	again := r.Groups[0]
	again.ID = "0c"
	r.Groups[0].Name, again.Name = "of ranks 0, 1, made by new_group, call 3", "of ranks 0, 1, made by new_group, call 4"
	r.Groups = append([]flight.GroupCalls{again}, r.Groups...)
	r.Marks = append(r.Marks, flight.Mark{Number: 4, Group: "0c", Step: 3, Label: "compute", At: time.Unix(1007, 0)})
	text := written(t, j)
	for _, line := range []string{`calls_total{rank="0",group="of ranks 0, 1",collective="all_reduce",node="0"} 24`, `step{rank="0",group="of ranks 0, 1",node="0"} 3`} {
		require.Contains(t, text, "\ngoccl_"+line+"\n")
	}
	require.NotContains(t, text, "made by")
}

// Marks that were overwritten hide how long a step took.
func TestStepWithoutItsBegin(t *testing.T) {
	j := job()
	j.Ranks[0].Marks = j.Ranks[0].Marks[1:]
	require.NotContains(t, written(t, j), "goccl_step_seconds")
	require.Contains(t, written(t, j), `goccl_step{rank="0",group="default",node="0"} 2`)
	before := flight.Mark{Number: 1, Group: "0a", Step: 0, Label: "wait", At: time.Unix(999, 0)}
	j.Ranks[0].Marks = append([]flight.Mark{before}, j.Ranks[0].Marks...)
	j.Ranks[0].Marks[0].Number = 7
	require.Contains(t, written(t, j), `goccl_step_seconds{rank="0",group="default",part="backward",node="0"} 3`)
}

// Names follow Prometheus' conventions, as promtool checks them: base units, and _total where a
// value only grows.
func TestConventions(t *testing.T) {
	for _, m := range Metrics {
		require.Regexp(t, `^goccl_[a-z]+(_[a-z]+)*$`, m.Name)
		require.Equal(t, m.Type == "counter", strings.HasSuffix(m.Name, "_total"), m.Name)
		require.Regexp(t, `^[A-Z0-9][^\\\n]*\.$`, m.Help)
		for _, unit := range []string{"milliseconds", "nanoseconds", "_ms", "_ns", "kilobytes", "_count", "_bucket"} {
			require.NotContains(t, m.Name, unit)
		}
	}
}

// Whatever groups, collectives, hosts and files are called, the text can be read and has their names.
func FuzzWrite(f *testing.F) {
	f.Add("pair", "all_reduce", "host", "train")
	f.Add(`a"b\c`, "x\ny", `\n`, `"},`)
	f.Add("\xff\xfe", "a\r\x00b", "日本", "{a=\"b\"} 1\n# TYPE x counter")
	f.Fuzz(func(t *testing.T, group, collective, host, run string) {
		j := job()
		j.Host, j.Run = host, run
		j.Ranks[1].Groups[1].Name, j.Ranks[1].Groups[1].Counters[0].Collective = group, collective
		all, err := parse(written(t, j))
		require.NoError(t, err)
		valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
		info := slices.IndexFunc(all, func(s sample) bool { return s.metric == "goccl_rank_info" })
		require.Equal(t, valid(host), all[info].labels["host"])
		require.Equal(t, valid(run), all[info].labels["run"])
		require.True(t, slices.ContainsFunc(all, func(s sample) bool {
			return s.labels["rank"] == "10" && s.labels["group"] == groupLabel(valid(group)) && cmp.Or(s.labels["collective"], s.labels["direction"]) == valid(collective)
		}))
	})
}

var goccl = regexp.MustCompile(`\bgoccl_[a-z_]+\b`)

// The guide lists all metrics, with their labels, and no other.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/metrics.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `(goccl_[a-z_]+)` \\| ([a-z, ]+) \\|")
	listed := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = m[2]
	}
	have := map[string]string{}
	for _, m := range Metrics {
		labels := map[string]bool{}
		m.collect(job(), func(_ float64, pairs ...string) {
			for pair := range slices.Chunk(pairs, 2) {
				labels[pair[0]] = true
			}
		})
		var names []string
		for _, name := range []string{"rank", "group", "collective", "direction", "part", "pid", "host"} {
			if labels[name] {
				names = append(names, name)
			}
		}
		have[m.Name] = strings.Join(append(names, "node"), ", ")
	}
	require.Equal(t, have, listed)
	for _, name := range goccl.FindAllString(string(page), -1) {
		require.Contains(t, have, name)
	}
}

// The dashboard shows metrics that there are, by labels that they have.
func TestDashboard(t *testing.T) {
	f, err := os.Open("../../examples/deploy/dashboard.json")
	require.NoError(t, err)
	defer f.Close()
	all, err := parse(written(t, job()))
	require.NoError(t, err)
	labels := map[string]map[string]string{}
	for _, s := range all {
		labels[s.metric] = s.labels
	}

	by, shown := regexp.MustCompile(`by \(([a-z]+)\) \([^g]*(?:rate\()?(goccl_[a-z_]+)`), 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		for _, name := range goccl.FindAllString(lines.Text(), -1) {
			shown++
			require.Contains(t, labels, name)
		}
		for _, m := range by.FindAllStringSubmatch(lines.Text(), -1) {
			require.Contains(t, labels[m[2]], m[1], lines.Text())
		}
	}
	require.GreaterOrEqual(t, shown, 10)
}
