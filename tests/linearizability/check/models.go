// What a warehouse should do, one operation at a time. A state is a value that == compares.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

const (
	ok      = "ok"
	missing = "missing"
	exists  = "exists"
)

var models = map[string]porcupine.Model{
	"rows":     modelOf("", rows, idsText),
	"names":    modelOf("", names, func(state string) string { return state }),
	"balances": modelOf([3]int{}, balances, func(state [3]int) string { return fmt.Sprint(state) }),
}

// modelOf makes a model of its first state and a step, which returns whether the answer fits, and the state after it.
func modelOf[S comparable](initial S, step func(S, *operation) (bool, S), text func(S) string) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return initial },
		Step: func(state, input, _ interface{}) (bool, interface{}) {
			return step(state.(S), input.(*operation))
		},
		DescribeOperation: func(input, _ interface{}) string { return input.(*operation).String() },
		DescribeState:     func(state interface{}) string { return text(state.(S)) },
	}
}

// rows: a table's row ids, sorted, each as often as it is there, in the form of idsKey.
func rows(state string, o *operation) (bool, string) {
	switch o.Do {
	case "append":
		return o.isOpen() || o.said(ok), merged(state, o.key)
	case "overwrite":
		return o.isOpen() || o.said(ok), o.key
	case "read":
		return o.isOpen() || state == o.key, state
	case "count":
		return o.isOpen() || string(o.Answer) == strconv.Itoa(len(state)/idBytes), state
	}
	panic(o.Do)
}

// keyOfRows finds the row ids of an operation once, because a search looks at it very often.
func keyOfRows(o *operation) {
	ids := o.Ids
	if o.Do == "read" {
		o.decode(&ids)
	}
	o.key = idsKey(ids)
}

const idBytes = 4

func idsKey(ids []int) string {
	sorted, key := slices.Clone(ids), []byte{}
	slices.Sort(sorted)
	for _, id := range sorted {
		key = binary.BigEndian.AppendUint32(key, uint32(id))
	}
	return string(key)
}

func merged(one, other string) string {
	key := make([]byte, 0, len(one)+len(other))
	for one != "" && other != "" {
		least := &one
		if other[:idBytes] < one[:idBytes] {
			least = &other
		}
		key, *least = append(key, (*least)[:idBytes]...), (*least)[idBytes:]
	}
	return string(append(append(key, one...), other...))
}

func idsText(key string) string {
	ids := []uint32{}
	for ; key != ""; key = key[idBytes:] {
		ids = append(ids, binary.BigEndian.Uint32([]byte(key)))
	}
	return fmt.Sprint(ids)
}

// names: a namespace's names, sorted, each with the mark of the table that it leads to, as "a=1 b=2".
func names(state string, o *operation) (bool, string) {
	marks := map[string]string{}
	for _, word := range strings.Fields(state) {
		name, mark, _ := strings.Cut(word, "=")
		marks[name] = mark
	}
	_, isThere := marks[o.Name]
	switch o.Do {
	case "create":
		if o.said(exists) || (o.isOpen() && isThere) {
			return isThere, state
		}
		marks[o.Name] = o.Mark
		return !isThere, marksText(marks)
	case "drop":
		if o.said(missing) || (o.isOpen() && !isThere) {
			return !isThere, state
		}
		delete(marks, o.Name)
		return isThere, marksText(marks)
	case "rename":
		_, isTaken := marks[o.New]
		switch {
		case o.said(missing):
			return !isThere, state
		case o.said(exists):
			return isTaken, state
		case o.isOpen() && (!isThere || isTaken):
			return true, state
		}
		marks[o.New] = marks[o.Name]
		delete(marks, o.Name)
		return isThere && !isTaken, marksText(marks)
	case "list":
		var listed []string
		o.decode(&listed)
		there := []string{}
		for name := range marks {
			there = append(there, name)
		}
		sort.Strings(there)
		return o.isOpen() || slices.Equal(listed, there), state
	case "look":
		if o.isOpen() || o.said(missing) {
			return o.isOpen() || !isThere, state
		}
		return isThere && o.said(marks[o.Name]), state
	}
	panic(o.Do)
}

func marksText(marks map[string]string) string {
	words := []string{}
	for name, mark := range marks {
		words = append(words, name+"="+mark)
	}
	sort.Strings(words)
	return strings.Join(words, " ")
}

// balances: of three tables, each with a single row. An answer has the balances that were read; null was not read.
func balances(state [3]int, o *operation) (bool, [3]int) {
	var read [3]*int
	o.decode(&read)
	for at, balance := range read {
		if balance != nil && *balance != state[at] {
			return false, state
		}
	}
	for at, amount := range o.Change {
		state[at] += amount
	}
	return true, state
}

func (o *operation) said(answer string) bool {
	return string(o.Answer) == `"`+answer+`"`
}

func (o *operation) decode(answer interface{}) {
	if o.isOpen() {
		return
	}
	if err := json.Unmarshal(o.Answer, answer); err != nil {
		log.Fatalf("%s: %v", o, err)
	}
}
