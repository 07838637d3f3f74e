"""The chapter that both stories share: installs crdkeeper, and runs it as processes on this machine."""

from demo.stage import Stage
from demo.terminal import eventually


def install(stage: Stage, *, webhook: bool = False) -> None:
    """Applies the manifests and starts the operator and, if needed, the conversion webhook."""
    terminal = stage.terminal
    terminal.heading("Install crdkeeper")
    terminal.run("kubectl apply --server-side -k manifests")
    terminal.run("kubectl wait --for=condition=Established crd -l app.kubernetes.io/name=crdkeeper")
    if stage.plane is None:
        terminal.comment("The demo needs no image: the operator runs on this machine instead of in pods.")
        terminal.run("kubectl scale deployment crdkeeper-operator -n crdkeeper-system --replicas=0")
    else:
        terminal.comment("Here is no kubelet to start the Deployments' pods: they run as processes.")
    terminal.comment("They have tokens of their ServiceAccounts: their rights are those of the manifests.")
    address = f" --webhook-url {stage.add_webhook().url}" if webhook else ""
    terminal.typed(f"crdkeeper run --kubeconfig operator.kubeconfig{address} &")
    operator = stage.start_operator()
    eventually(operator.leading, "the operator leads")
    terminal.show(operator.log_since().rstrip("\n"))
    if stage.webhook is not None:
        terminal.typed(
            "crdkeeper webhook --kubeconfig webhook.kubeconfig --tls-cert-file tls.crt "
            "--tls-private-key-file tls.key &"
        )
        stage.webhook.start()
        terminal.show(stage.webhook.process.log.read_text().rstrip("\n"))
