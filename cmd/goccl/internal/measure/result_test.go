package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// document returns a Document that uses every field.
func document() *Document {
	c := Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 4, Bytes: 1 << 20, InPlace: true}
	return &Document{
		Version: 1,
		Date:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine: Machine{CPU: "a processor", Cores: 2, GOMAXPROCS: 2, OS: "linux", Arch: "amd64", Go: "go1.26.0", ClockNS: 25},
		Config:  Config{File: "ccl.yaml", FoundBy: "working directory"},
		Results: []Result{
			{Case: c, Transport: "local", Topology: "torus_2d:2x2", Config: "a.yaml", Rows: c.compared([]Row{
				{Library: Yardstick, Entry: OwnCopy, Calls: 100, P50: 50, P99: 60.5, Min: 49.001},
				{Library: Yardstick, Entry: PeerCopy, Calls: 100, P50: 80, P99: 90, Min: 70},
				{Library: Yardstick, Entry: CoreToCore},
				{Library: Library, Entry: Auto, Params: "chunk=1KiB", Memory: Alloc, Ran: "ring", Calls: 99, P50: 100, P90: 150.5, P99: 200, Min: 90, Whole: 300, CPU: 1.5, Errors: 3},
				{Library: Library, Entry: "grid", Refused: "it is not for ring_1d"},
			})},
			{Case: Case{Collective: barrier, Ranks: 2, Compute: 250 * time.Microsecond, Jitter: 0.1, Buckets: 4}, Transport: "local", Rows: []Row{{Library: Library, Calls: 1, P50: 0.2, P99: 0.3, Min: 0.1}}},
		},
	}
}

func TestCSV(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteCSV(&b, document().Results))
	require.Equal(t, `library,collective,entry,dtype,op,ranks,bytes,in_place,consume,calls,p50_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,x_floor,errors,compute_us,jitter,buckets,p90_us,whole_us,cpu_cores,transport,memory,params,topology,config,wait,added_us,hidden,x_at_end
yardstick,all_reduce,own_copy,float32,sum,4,1048576,true,false,100,50,60.5,49.001,20.97,31.46,1,0.625,1,0,,,1,,,,local,,,torus_2d:2x2,a.yaml,false,,,
yardstick,all_reduce,peer_copy,float32,sum,4,1048576,true,false,100,80,90,70,13.11,19.66,1.6,1,1.6,0,,,1,,,,local,,,torus_2d:2x2,a.yaml,false,,,
goccl,all_reduce,auto,float32,sum,4,1048576,true,false,99,100,200,90,10.49,15.73,2,1.25,2,3,,,1,150.5,300,1.5,local,alloc,chunk=1KiB,torus_2d:2x2,a.yaml,false,,,
goccl,barrier,,,,2,0,false,false,1,0.2,0.3,0.1,,,,,,0,250,0.1,4,,,,local,,,,,false,,,
`, b.String())
	require.ErrorIs(t, WriteCSV(full{}, document().Results), os.ErrPermission)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrPermission }

func TestJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	d := document()
	require.NoError(t, d.WriteFile(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/document.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
	again, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, d, again)

	_, err = ReadFile(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, text := range []string{"", "{}", "[]", `{"version": 2}`, "library,collective"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = ReadFile(path)
		require.ErrorContains(t, err, "a.json is not what goccl bench --json writes", text)
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"-": Digits(0, 4), "0.2534": Digits(0.25341, 4), "2.403": Digits(2.403, 4), "24.03": Digits(24.034, 4), "12345": Digits(12345.4, 4),
		"0.0006": Digits(0.000565, 3), "1.10": Multiple(1.1), "100.0": Digits(99.99, 3),
	} {
		require.Equal(t, want, got)
	}
	require.Equal(t, "-", Multiple(0))
	require.Equal(t, 0.001235, rounded(0.00123456))
	require.Zero(t, rounded(0))
}

func TestReadingTheMachine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("cpuinfo", "processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n")
	require.Equal(t, "A: B", Info(filepath.Join(dir, "cpuinfo"), "model name"))
	require.Empty(t, Info(filepath.Join(dir, "cpuinfo"), "model"))
	require.Empty(t, Info(filepath.Join(dir, "missing"), "model name"))
	for index, cache := range []string{"1 Data 48K", "1 Instruction 32K", "2 Unified 1024K"} {
		parts := strings.Fields(cache)
		for i, file := range []string{"level", "type", "size"} {
			write("cache/index"+string(rune('0'+index))+"/"+file, parts[i]+"\n")
		}
	}
	require.Equal(t, "L1d 48K, L2 1024K", caches(filepath.Join(dir, "cache")))
	require.Empty(t, caches(filepath.Join(dir, "missing")))
}
