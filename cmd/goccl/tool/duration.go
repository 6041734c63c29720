package tool

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// durations is the option by which all flags of the type time.Duration refuse what is none in the
// same words.
var durations = kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := parseDuration(text)
	target.SetInt(int64(d))
	return err
}))

// parseDuration is time.ParseDuration, whose error says how to write what was probably meant.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; %s", text, meantDuration(text))
	}
	return d, nil
}

// numberAndUnit matches a number with what may be the name of a unit.
var numberAndUnit = regexp.MustCompile(`^([0-9]+\.?[0-9]*)\s*([a-zµμ]*)$`)

// unitNames are the names of units that are not those of time.ParseDuration.
var unitNames = map[string]string{
	"sec": "s", "second": "s",
	"min": "m", "minute": "m",
	"hr": "h", "hour": "h",
	"msec": "ms", "milli": "ms", "millisecond": "ms",
	"usec": "us", "micro": "us", "microsecond": "us",
	"nsec": "ns", "nano": "ns", "nanosecond": "ns",
}

// meantDuration says how to write what is no duration.
func meantDuration(text string) string {
	m := numberAndUnit.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return "write it like 250us, 200ms, 5s or 1m30s"
	}
	number, unit := m[1], m[2]
	if unit == "" {
		return fmt.Sprintf("it has no unit: write %[1]ss for seconds, %[1]sms for milliseconds", number)
	}
	name := strings.TrimSuffix(unit, "s")
	for _, unit := range []string{unit, unitNames[unit], unitNames[name], name} { // such as s, sec, seconds
		if _, err := time.ParseDuration(number + unit); err == nil && unit != "" {
			return fmt.Sprintf("write %s%s", number, unit)
		}
	}
	return "write it like 250us, 200ms, 5s or 1m30s"
}
