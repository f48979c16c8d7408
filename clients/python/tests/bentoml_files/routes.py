"""Methods whose routes are the names of others."""

import bentoml


@bentoml.service
class Routes:
    @bentoml.api(route="/v1/predict")
    def predict(self, x: int) -> str:
        return "old"

    @bentoml.api(route="/predict")
    def predict_v2(self, x: int) -> str:
        return "new"

    @bentoml.task(route="/v1/job")
    def job(self, x: int) -> str:
        return "old job"

    @bentoml.task(route="/job")
    def job_v2(self, x: int) -> str:
        return "new job"
