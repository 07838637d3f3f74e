package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The versions as types, as one would generate them. What conversion has no business with stays as it came.

type crontabV1 struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       specV1          `json:"spec"`
}

type specV1 struct {
	Host       string        `json:"host"`
	Port       int           `json:"port"`
	Schedule   string        `json:"schedule"`
	Suspend    bool          `json:"suspend"`
	Replicas   int           `json:"replicas"`
	Containers []containerV1 `json:"containers"`
}

type containerV1 struct {
	Name   string            `json:"name"`
	Image  string            `json:"image"`
	Args   []string          `json:"args,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Memory string            `json:"memory"`
}

type crontabV1alpha1 struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       specV1alpha1    `json:"spec"`
}

type specV1alpha1 struct {
	HostPort   string              `json:"hostPort"`
	CronSpec   string              `json:"cronSpec"`
	Suspend    bool                `json:"suspend"`
	Replicas   int                 `json:"replicas"`
	Containers []containerV1alpha1 `json:"containers"`
}

type containerV1alpha1 struct {
	Name      string            `json:"name"`
	Image     string            `json:"image"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	MemoryMiB int               `json:"memoryMiB"`
}

// convert returns the object at the desired apiVersion, a type of this file or what it was given.
func convert(object json.RawMessage, desired string) (any, error) {
	var typeMeta struct {
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(object, &typeMeta); err != nil {
		return nil, err
	}
	if typeMeta.APIVersion == desired {
		return object, nil
	}
	group, from, _ := strings.Cut(typeMeta.APIVersion, "/")
	desiredGroup, to, _ := strings.Cut(desired, "/")
	if group != desiredGroup {
		return nil, fmt.Errorf("%s is of another group than %s", typeMeta.APIVersion, desired)
	}
	switch from + " to " + to {
	case "v1alpha1 to v1":
		var old crontabV1alpha1
		if err := json.Unmarshal(object, &old); err != nil {
			return nil, err
		}
		return old.upgraded(desired)
	case "v1 to v1alpha1":
		var current crontabV1
		if err := json.Unmarshal(object, &current); err != nil {
			return nil, err
		}
		return current.downgraded(desired)
	}
	return nil, fmt.Errorf("no way from %s to %s", typeMeta.APIVersion, desired)
}

func (old *crontabV1alpha1) upgraded(apiVersion string) (*crontabV1, error) {
	colon := strings.LastIndexByte(old.Spec.HostPort, ':')
	if colon < 0 {
		return nil, fmt.Errorf("spec.hostPort: %q is no HOST:PORT", old.Spec.HostPort)
	}
	port, err := strconv.Atoi(old.Spec.HostPort[colon+1:])
	if err != nil {
		return nil, fmt.Errorf("spec.hostPort: %w", err)
	}
	made := &crontabV1{
		APIVersion: apiVersion,
		Kind:       old.Kind,
		Metadata:   old.Metadata,
		Spec: specV1{
			Host:       old.Spec.HostPort[:colon],
			Port:       port,
			Schedule:   old.Spec.CronSpec,
			Suspend:    old.Spec.Suspend,
			Replicas:   old.Spec.Replicas,
			Containers: make([]containerV1, len(old.Spec.Containers)),
		},
	}
	for i, each := range old.Spec.Containers {
		made.Spec.Containers[i] = containerV1{each.Name, each.Image, each.Args, each.Env, strconv.Itoa(each.MemoryMiB) + "Mi"}
	}
	return made, nil
}

func (current *crontabV1) downgraded(apiVersion string) (*crontabV1alpha1, error) {
	made := &crontabV1alpha1{
		APIVersion: apiVersion,
		Kind:       current.Kind,
		Metadata:   current.Metadata,
		Spec: specV1alpha1{
			HostPort:   current.Spec.Host + ":" + strconv.Itoa(current.Spec.Port),
			CronSpec:   current.Spec.Schedule,
			Suspend:    current.Spec.Suspend,
			Replicas:   current.Spec.Replicas,
			Containers: make([]containerV1alpha1, len(current.Spec.Containers)),
		},
	}
	for i, each := range current.Spec.Containers {
		mebibytes, err := mebibytes(each.Memory)
		if err != nil {
			return nil, fmt.Errorf("spec.containers[%d].memory: %w", i, err)
		}
		made.Spec.Containers[i] = containerV1alpha1{each.Name, each.Image, each.Args, each.Env, mebibytes}
	}
	return made, nil
}

// mebibytes reads a quantity in Mi or Gi, the units that the benchmark's objects have.
func mebibytes(quantity string) (int, error) {
	if number, found := strings.CutSuffix(quantity, "Gi"); found {
		gibibytes, err := strconv.Atoi(number)
		return gibibytes * 1024, err
	}
	number, found := strings.CutSuffix(quantity, "Mi")
	if !found {
		return 0, fmt.Errorf("%q is neither in Mi nor in Gi", quantity)
	}
	return strconv.Atoi(number)
}
