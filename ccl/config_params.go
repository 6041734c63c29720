package ccl

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// param is one field of an algorithm's parameters: the key it has in ccl.yaml and
// a pointer to it.
type param struct {
	key   string
	field any // *bool, *int, *string, *time.Duration or *ByteSize
}

// paramFields lists the parameters in what Algorithm.Params returns: the fields with
// a yaml tag.
func paramFields(params any) ([]param, error) {
	v := reflect.ValueOf(params)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("its Params returns a %T, and has to return a pointer to a struct", params)
	}
	var found []param
	for i := range v.Elem().NumField() {
		field := v.Elem().Type().Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}
		if !field.IsExported() {
			return nil, fmt.Errorf("its parameter %s is the unexported field %s", key, field.Name)
		}
		pointer := v.Elem().Field(i).Addr().Interface()
		switch pointer.(type) {
		case *bool, *int, *string, *time.Duration, *ByteSize:
			found = append(found, param{key, pointer})
		default:
			return nil, fmt.Errorf("its parameter %s is a %s, and can be a bool, int, string, time.Duration or ccl.ByteSize",
				key, field.Type)
		}
	}
	return found, nil
}

// fill stores in params what stands at n, and returns the line of each.
func (n node) fill(params []param) (lines map[string]int, err error) {
	lines = make(map[string]int)
	known := make(fields)
	for _, p := range params {
		known[p.key] = func(n node) error {
			lines[p.key] = n.line
			return n.store(p.field)
		}
	}
	return lines, n.read(known)
}

// store reads n into a field of one of the types of param.
func (n node) store(field any) (err error) {
	switch p := field.(type) {
	case *bool:
		*p, err = n.boolean()
	case *int:
		*p, err = n.whole(math.MinInt, math.MaxInt)
	case *string:
		*p, err = n.text()
	case *time.Duration:
		*p, err = n.duration()
	case *ByteSize:
		*p, err = scalar(n, parseByteSize)
	}
	return err
}

// String returns the parameter's value as ccl.yaml writes it.
func (p param) String() string {
	if s, ok := p.field.(*string); ok {
		return strconv.Quote(*s)
	}
	return fmt.Sprint(reflect.ValueOf(p.field).Elem().Interface())
}
