"""contrib/kubernetes: Kubernetes takes its manifests, and linkgauge what its containers type."""

import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from linkgauge.cli.main import application
from schema_kit import stored

FOLDER = Path(__file__).parents[2] / "contrib" / "kubernetes"
COMMANDS = application().loaded()


def manifest(name):
    return yaml.safe_load((FOLDER / name).read_text())


POD = manifest("base/daemonset.yaml")["spec"]["template"]["spec"]


def resources(*folders):
    for folder in folders:
        for name in manifest(f"{folder}/kustomization.yaml")["resources"]:
            yield f"{folder}/{name}"


@pytest.mark.parametrize("name", [*resources("base", "node-problem-detector")])
def test_kubernetes_takes_what_a_base_has(name):
    for one in yaml.safe_load_all((FOLDER / name).read_text()):
        kubernetes_validate.validate(one, "1.31", strict=True)


@pytest.mark.parametrize("container", POD["containers"], ids=lambda one: one["name"])
def test_linkgauge_takes_what_the_containers_type(container):
    name, *typed = (word.replace("$(HOST_IP)", "192.0.2.1") for word in container["args"])
    COMMANDS[name].make_context(name, typed)
    asked = {one["name"]: one.get("value") for one in container["env"]}
    (mounted,) = (one for one in container["volumeMounts"] if one["name"] == "history")
    assert asked["LINKGAUGE_HISTORY"].startswith(mounted["mountPath"] + "/")


@pytest.mark.parametrize("name", ["base", "nvidia", "node-problem-detector"])
def test_kustomize_has_a_schema_that_takes_its_files(name):
    stored(b"#/definitions/Kustomization").validate(manifest(f"{name}/kustomization.yaml"))


def test_the_gpus_go_to_containers_that_are_there():
    (patch,) = manifest("nvidia/kustomization.yaml")["patches"]
    changed = yaml.safe_load(patch["patch"])
    base = manifest("base/daemonset.yaml")
    assert (changed["kind"], changed["metadata"]["name"]) == (
        base["kind"],
        base["metadata"]["name"],
    )
    names = [one["name"] for one in changed["spec"]["template"]["spec"]["containers"]]
    assert names == [one["name"] for one in POD["containers"]]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("name", ["base", "nvidia"])
def test_kustomize_makes_manifests_that_kubernetes_takes(name):
    done = subprocess.run(["kubectl", "kustomize", FOLDER / name], capture_output=True, text=True,
                          check=True, timeout=60)  # fmt: skip
    made = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    for one in made.values():
        kubernetes_validate.validate(one, "1.31", strict=True)
    pod = made["DaemonSet"]["spec"]["template"]["spec"]
    kustomization = manifest("base/kustomization.yaml")
    assert made["DaemonSet"]["metadata"]["namespace"] == kustomization["namespace"]
    (image,) = kustomization["images"]
    assert {one["image"] for one in pod["containers"]} == {f"{image['newName']}:{image['newTag']}"}
    assert pod.get("runtimeClassName") == ("nvidia" if name == "nvidia" else None)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kustomize_makes_what_reports_a_condition_of_each_node():
    done = subprocess.run(
        ["kubectl", "kustomize", FOLDER / "node-problem-detector"], capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    made = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    for one in made.values():
        kubernetes_validate.validate(one, "1.31", strict=True)
    pod = made["DaemonSet"]["spec"]["template"]["spec"]
    (config,) = (one["configMap"] for one in pod["volumes"] if one["name"] == "config")
    assert config["name"] == made["ConfigMap"]["metadata"]["name"]
    assert made["ConfigMap"]["data"].keys() == {"linkgauge-monitor.json", "links.sh"}
    (subject,) = made["ClusterRoleBinding"]["subjects"]
    account = made["ServiceAccount"]["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert pod["serviceAccountName"] == account["name"]
